// Wait for a deployment
// The program watches a chat channel until the deployment is done. Looking costs the model nothing.

for (let look = 1; look <= 50; look++) {
  const { messages } = await chat.getChannelHistory({ channel: 'deployments', limit: 5 });
  const done = messages.find((m: any) => m.text.includes('deployment complete'));
  if (done) {
    return { looks: look, message: done.text };
  }
  console.log(messages[0].text);
  await sleep(100);
}
throw new Error('the deployment is not done after 50 looks');
