// Copy a transcript into the CRM
// A meeting transcript of 50,000 tokens goes from the drive to a sales meeting. The model sees a receipt.

const doc = await drive.getDocument({ documentId: 'abc123' });
const saved = await crm.updateRecord({
  objectType: 'SalesMeeting',
  recordId: '00Q5f000001abcXYZ',
  data: { Notes: doc.content },
});
return { title: doc.title, words: doc.content.split(/\s+/).length, record: saved.id, version: saved.version };
