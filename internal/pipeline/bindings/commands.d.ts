/** How a command ended. */
interface CommandResult {
  /** Of its exit; 128 and the number of the signal if one ended it. */
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
  /** It was ended since it wrote more than there is room for. */
  readonly truncated: boolean;
}
/** Starts one of the commands that settings allow, without a shell. It sees no file, neither of the workspace: give it data as stdin. */
declare function exec(command: string, args?: readonly string[], options?: { stdin?: string }): Promise<CommandResult>;
