/** A task: a program with the tools that it may call, or a description for which a model writes one. */
export interface AgentTask {
  id?: string;
  description: string;
  code?: string;
  /** Tools, or whole servers. */
  requiredTools?: string[];
  status?: 'pending';
}

export interface TaskResult {
  success: boolean;
  // deno-lint-ignore no-explicit-any
  data: any;
  /** One sentence about what ran. */
  summary: string;
  error?: { kind: string; message: string; hint?: string };
  /** duration is in milliseconds, memoryUsed in bytes. */
  stats: { duration: number; tokensUsed: number; memoryUsed: number; toolsCalled: string[] };
  piiTokenized: boolean;
}

export interface Skill {
  name: string;
  description: string;
  tags?: string[];
}

export interface OrchestratorStats {
  servers: number;
  tools: number;
  skills: number;
  activeTasks: number;
  maxConcurrentTasks: number;
}
