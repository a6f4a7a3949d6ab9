async function waitForDeployment(timeoutMs = 20_000, intervalMs = 50): Promise<string> {
  const deadline = Date.now() + timeoutMs;
  while (Date.now() < deadline) {
    const history = await chat.getChannelHistory({ channel: 'deployments', limit: 10 });
    const match = history.messages.find((m) => /deployment complete/i.test(m.text));
    if (match) return match.text;
    await new Promise((r) => setTimeout(r, intervalMs));
  }
  throw new Error(`Timed out after ${timeoutMs}ms`);
}

const timeout = new Promise<never>((_, reject) => setTimeout(() => reject(new Error('race lost')), 25_000));
const text = await Promise.race([waitForDeployment(), timeout]);
return text.replace(/\d+/g, 'N');
