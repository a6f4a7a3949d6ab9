for (let look = 1; look <= 50; look++) {
  const { messages } = await chat.getChannelHistory({ channel: 'deployments', limit: 1 });
  if (messages[0].text.includes('deployment complete')) return { looks: look, pods: messages[0].text.match(/\d+ of \d+/)?.[0] };
  await sleep(20);
}
throw new Error('the deployment is not done after 50 looks');
