import { crm, chat } from './servers';

type NewLead = { LastName: string; Company: string; Email: string };
const wanted: NewLead[] = [
  { LastName: 'Halvorsen', Company: 'Fjord Robotics', Email: 'h@fjord.example' },
  { LastName: 'Ibsen', Company: 'Fjord Robotics', Email: 'i@fjord.example' },
];

const created = [];
for (const data of wanted) {
  created.push(await crm.createRecord({ objectType: 'Lead', data }));
}
const first = created[0];

const updated = await crm.updateRecord({ objectType: 'Lead', recordId: first.id, data: { Score: 77 }, ifVersion: first.version });
let conflict: string | null = null;
try {
  await crm.updateRecord({ objectType: 'Lead', recordId: first.id, data: { Score: 12 }, ifVersion: first.version });
} catch (e: any) {
  conflict = e.message.replace(first.id, '<id>');
}

const posted = await chat.sendMessage({ channel: 'random', text: `Created ${created.length} leads :tada:` });
await chat.addReaction({ channel: posted.channel, ts: posted.ts, name: 'tada' });
await chat.deleteMessage({ channel: posted.channel, ts: posted.ts });

const bulk = await crm.bulkUpdateRecords({
  objectType: 'Lead',
  updates: created.map(({ id }, i) => ({ recordId: id, data: { Notes: `no. ${i + 1}` } })),
});
console.log(bulk.updated, 'updated', bulk.failed, 'failed');
await Promise.all(created.map(({ id }) => crm.deleteRecord({ objectType: 'Lead', recordId: id })));
const left = await crm.searchRecords({ objectType: 'Lead', filters: [{ field: 'Company', op: 'eq', value: 'Fjord Robotics' }] });
return { changed: updated.changed, version: updated.version, conflict, left: left.total };
