import { Client, toResult } from '../client.ts';
import type { AgentTask, OrchestratorStats, Skill, TaskResult } from '../types.ts';

/** MCPOrchestrator runs tasks and skills. All of the work is done by Retort, with its rules and its audit log. */
export class MCPOrchestrator {
  #client!: Client;
  #stats!: OrchestratorStats;
  #skills: Skill[] = [];

  /** Starts Retort in the working directory. */
  async initialize(): Promise<void> {
    this.#client = await Client.connect();
    await this.#refresh();
  }

  async executeTask(task: AgentTask): Promise<TaskResult> {
    return await this.#run('execute_task', { ...task });
  }

  /** Saves a function, or the body of one, as a skill. */
  async saveSkill(name: string, description: string, code: string, tags: string[] = []): Promise<void> {
    await this.#client.call('save_skill', { name, description, code, tags });
    await this.#refresh();
  }

  async executeSkill(name: string, args: Record<string, unknown> = {}): Promise<TaskResult> {
    return await this.#run('execute_skill', { name, arguments: args });
  }

  /** Returns the skills that have the text in their name, description or tags. */
  searchSkills(text: string): Skill[] {
    const has = (value: string) => value.toLowerCase().includes(text.toLowerCase());
    return this.#skills.filter((skill) => [skill.name, skill.description, ...(skill.tags ?? [])].some(has));
  }

  /** Returns the counts as they were after the last call. */
  getStats(): OrchestratorStats {
    return this.#stats;
  }

  async #run(tool: string, args: Record<string, unknown>): Promise<TaskResult> {
    const result = toResult(await this.#client.call(tool, args));
    await this.#refresh();
    return result;
  }

  async #refresh(): Promise<void> {
    const [stats, list] = await Promise.all([this.#client.call('get_execution_stats'), this.#client.call('list_skills')]);
    const { servers, tools, skills, activeTasks, maxConcurrentTasks } = stats;
    this.#stats = { servers, tools, skills, activeTasks, maxConcurrentTasks };
    this.#skills = list.skills ?? [];
  }
}

if (import.meta.main) {
  const orchestrator = new MCPOrchestrator();
  await orchestrator.initialize();
  console.log(orchestrator.getStats());
}
