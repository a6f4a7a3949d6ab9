import * as drive from './servers/drive/index';
import { getDocument } from './servers/drive/getDocument';

namespace Text {
  export const words = (s: string) => s.match(/[\p{L}\p{N}'-]+/gu) ?? [];
  export function top(list: string[], n: number): [string, number][] {
    const freq = list.reduce((m, w) => m.set(w, (m.get(w) ?? 0) + 1), new Map<string, number>());
    return [...freq.entries()].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).slice(0, n);
  }
}

const doc = await getDocument({ documentId: 'abc123', format: 'text' });
const speakers = [...doc.content.matchAll(/^\[(\d\d):(\d\d):(\d\d)\] ([^:]+):/gm)].map(([, h, m, s, who]) => ({ at: +h * 3600 + +m * 60 + +s, who }));
const talk = new Map<string, number>();
speakers.forEach(({ at, who }, i) => talk.set(who, (talk.get(who) ?? 0) + ((speakers[i + 1]?.at ?? at) - at)));
const long = Text.words(doc.content).map((w) => w.toLowerCase()).filter((w) => w.length > 8);
const folder = await drive.listFolder();

const [who, seconds] = [...talk].sort((a, b) => b[1] - a[1])[0];
return {
  title: doc.title,
  mostTalk: `${who} ${new Date(seconds * 1000).toISOString().slice(11, 19)}`,
  topWords: Text.top(long, 3),
  folders: folder.files.length,
} as const;
