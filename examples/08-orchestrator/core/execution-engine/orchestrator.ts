import { Client, toResult } from '../../runtime/client.ts';

/** ExecutionOrchestrator does tasks that are described in words. The model that the settings name writes the programs. */
export class ExecutionOrchestrator {
  #client!: Client;

  /** The folder with definitions of tools is not read here: the setting toolDefinitions names it. */
  constructor(_definitions?: string) {}

  /** Starts Retort in the working directory. */
  async initialize(): Promise<void> {
    this.#client = await Client.connect();
  }

  async execute(task: string, language: 'typescript' | 'python' = 'typescript') {
    const { success, data, summary, error, stats, piiTokenized } = toResult(await this.#client.call('execute_task', { task, language }));
    const memoryUsed = `${Math.round(stats.memoryUsed / 2 ** 20)}M`;
    const metrics = { executionTime: stats.duration, memoryUsed, tokensInSummary: stats.tokensUsed };
    return { success, output: data, summary, error, metrics, piiTokenized };
  }
}
