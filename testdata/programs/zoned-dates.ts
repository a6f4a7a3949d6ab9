const cals = await calendar.listCalendars();
const zone: string = cals.find((c: any) => c.id === 'primary').timeZone;

const { items: events } = await calendar.listEvents({ timeMin: '2026-10-20T00:00:00Z', timeMax: '2026-11-10T00:00:00Z' });

function local(iso: string, timeZone: string) {
  const parts = new Intl.DateTimeFormat('en-CA', { timeZone, year: 'numeric', month: '2-digit', day: '2-digit', hour: '2-digit', minute: '2-digit', hourCycle: 'h23' }).formatToParts(new Date(iso));
  const get = (t: string) => parts.find((p) => p.type === t)!.value;
  return `${get('year')}-${get('month')}-${get('day')} ${get('hour')}:${get('minute')}`;
}

function isoWeek(d: Date): number {
  const t = new Date(Date.UTC(d.getUTCFullYear(), d.getUTCMonth(), d.getUTCDate()));
  t.setUTCDate(t.getUTCDate() + 4 - (t.getUTCDay() || 7));
  return Math.ceil(((t.valueOf() - Date.UTC(t.getUTCFullYear(), 0, 1)) / 86_400_000 + 1) / 7);
}

const timed = events.filter((e) => e.start.dateTime);
const weeks: Record<number, number> = {};
for (const e of timed) {
  const w = isoWeek(new Date(e.start.dateTime!));
  weeks[w] = (weeks[w] || 0) + 1;
}
return {
  zone,
  weeks,
  summer: local('2026-10-25T00:30:00Z', zone),
  winter: local('2026-10-25T01:30:00Z', zone),
  newYork: local(timed[0].start.dateTime!, 'America/New_York'),
  spoken: new Date('2026-11-02T09:00:00Z').toLocaleString('en-US', { timeZone: zone, dateStyle: 'medium', timeStyle: 'short' }),
};
