// A draft to the owner of a lead. The address passes through the program as a token: it is put back
// on the way to the mail server, and nowhere else.
const { records } = await crm.searchRecords({ objectType: 'Lead', filters: [{ field: 'Status', op: 'eq', value: 'Qualified' }], limit: 1 });
const lead = records[0];
await mail.createDraft({ to: [String(lead.Email)], subject: 'Our talk', body: `Dear ${lead.FirstName}, thank you for your time.` });
const drafts = await mail.searchMessages({ query: 'in:draft', maxResults: 1 });
const found = await mail.getMessage({ id: drafts.messages[0].id });
return {
  addressInTheProgram: /^\[EMAIL_\d+\]$/.test(String(lead.Email)),
  theDraftHasTheSame: JSON.stringify(found).includes(String(lead.Email)),
  domain: pii.domain(String(lead.Email)),
};
