// Prepare the meetings of the week
// Calendar, CRM, mailbox and issues are joined for each customer that will be met. The model sees the five that matter most.

import * as calendar from './servers/calendar';
import * as crm from './servers/crm';
import * as issues from './servers/issues';
import * as mail from './servers/mail';

async function brief(event: any) {
  const guest = event.attendees.find((a: any) => !a.email.endsWith('@nordlys.example'));
  if (!guest) return null;
  const contacts = await crm.searchRecords({
    objectType: 'Contact',
    filters: [{ field: 'Email', op: 'eq', value: guest.email }],
    fields: ['AccountId', 'Title'],
    limit: 1,
  });
  const contact = contacts.records[0];
  if (!contact) return null;

  const customer = event.summary.match(/(?:Demo for|Quarterly review|Contract talk|Site visit|Kick-off|Support call) (.+)/)?.[1] ?? '';
  const [deals, unread, open] = await Promise.all([
    crm.searchRecords({
      objectType: 'Deal',
      filters: [
        { field: 'AccountId', op: 'eq', value: contact.AccountId },
        { field: 'Probability', op: 'in', value: [10, 25, 50, 75] },
        { field: 'Currency', op: 'eq', value: 'EUR' },
      ],
      fields: ['Amount', 'Stage'],
    }),
    mail.searchMessages({ query: `is:unread from:${guest.email}` }),
    issues.searchIssues({ query: `is:open is:issue ${customer.split(' ').slice(0, 2).join(' ')}`, per_page: 1 }),
  ]);
  return {
    when: event.start.dateTime,
    subject: event.summary,
    guest: `${guest.displayName}, ${contact.Title}`,
    openDeals: deals.total,
    pipelineEUR: deals.records.reduce((sum, deal) => sum + Number(deal.Amount), 0),
    unreadMails: unread.resultSizeEstimate,
    openIssues: open.total_count,
  };
}

const week = await calendar.listEvents({
  calendarId: 'sales',
  timeMin: '2026-11-02T00:00:00Z',
  timeMax: '2026-11-09T00:00:00Z',
  maxResults: 250,
});
const briefs = (await Promise.all(week.items.map(brief))).filter(b => b !== null);
briefs.sort((a, b) => b.pipelineEUR - a.pipelineEUR);

console.log(`${week.items.length} meetings, ${briefs.length} with customers known to the CRM`);
return briefs.slice(0, 5);
