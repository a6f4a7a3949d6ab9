import * as chat from './servers/chat';

interface Profile {
  real_name: string;
  city: string;
}

const members: { id: string; real_name: string }[] = [];
let cursor: string | undefined;
do {
  const page = await chat.listUsers({ limit: 20, cursor });
  members.push(...page.members);
  cursor = page.response_metadata?.next_cursor || undefined;
} while (cursor);

const profiles: Profile[] = await Promise.all(members.slice(0, 12).map(m => chat.getUserProfile(m.id)));
const text = `Profiles:
${profiles.slice(0, 2).map(p => `  ${p.real_name} (${p.city})`).join('\n')}`;
console.log(text);
return { members: members.length, cities: new Set(profiles.map(p => p.city)).size, lines: text.split('\n').length };
