import { listEvents, findFreeSlots } from "./servers/calendar";

const DAY = 24 * 60 * 60 * 1000;
const monday = new Date(Date.UTC(2026, 10, 2));
const friday = new Date(monday.getTime() + 5 * DAY);

const { items } = await listEvents({
  calendarId: "sales",
  timeMin: monday.toISOString(),
  timeMax: friday.toISOString(),
  maxResults: 250,
});

const minutes = (e: (typeof items)[number]) =>
  e.start.dateTime && e.end.dateTime ? (Date.parse(e.end.dateTime) - Date.parse(e.start.dateTime)) / 60000 : 0;

const perDay: Record<string, number> = {};
for (const e of items) {
  const day = new Date(e.start.dateTime ?? e.start.date!).toLocaleDateString("en-GB", { weekday: "long", timeZone: "Europe/Oslo" });
  perDay[day] = (perDay[day] ?? 0) + minutes(e);
}
Object.entries(perDay).forEach(([day, m]) => console.log(`${day}: ${Math.floor(m / 60)}h ${m % 60}m`));

const busiest = Object.entries(perDay).sort(([, a], [, b]) => b - a)[0];
const slots = await findFreeSlots({
  attendees: ["thiago.teixeira@nordlys.example", "silje.haugen@nordlys.example"],
  durationMinutes: 45,
  timeMin: monday.toISOString(),
  timeMax: friday.toISOString(),
  limit: 3,
});
const fmt = new Intl.DateTimeFormat("en-US", { hour: "2-digit", minute: "2-digit", hour12: false, timeZone: "Europe/Oslo" });
return {
  meetings: items.length,
  busiest: busiest[0],
  slots: slots.slots.map((s) => ({ day: s.start.slice(0, 10), oslo: `${fmt.format(new Date(s.start))}-${fmt.format(new Date(s.end))}` })),
};
