import { readRows } from './servers/sheets';
const all = await readRows({ spreadsheetId: 'orders-2026', sheet: 'Orders', limit: 10000 });
export default all.rows.map((r) => ({ id: r['Order ID'], date: r['Date'], amount: r['Amount'], status: r['Status'] }));
