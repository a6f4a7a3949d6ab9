const ids = ['00Q001000', '00Q001001', 'missing', '00Q001002', 'forbidden'];

const settled = await Promise.allSettled(
  ids.map((recordId) => crm.getRecord({ objectType: 'Lead', recordId, fields: ['FirstName', 'LastName', 'Score'] })),
);

const found = settled
  .filter((r): r is PromiseFulfilledResult<any> => r.status === 'fulfilled')
  .map((r) => r.value);
const failed = settled.flatMap((r, i) => (r.status === 'rejected' ? [{ id: ids[i], reason: r.reason.message as string }] : []));

console.log('found:', found.length, 'failed:', failed.length);
failed.forEach(({ id, reason }) => console.error(`  ${id}: ${reason}`));

return {
  names: found.map(({ FirstName, LastName }) => `${FirstName} ${LastName}`),
  average: found.reduce((s, r) => s + r.Score, 0) / found.length,
  failed,
};
