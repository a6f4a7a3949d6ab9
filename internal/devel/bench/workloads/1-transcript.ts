const doc = await drive.getDocument({ documentId: 'abc123' });
const saved = await crm.updateRecord({ objectType: 'SalesMeeting', recordId: '00Q5f000001abcXYZ', data: { Notes: doc.content } });
return { version: saved.version };
