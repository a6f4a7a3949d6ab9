// ---- "maps"

export interface MapsInput {
  any?: Record<string, any>;
  strings?: { [key: string]: string };
  objects?: {
    [key: string]: {
      x: number;
      /** Why. */
      note?: string;
    };
  };
  sealed?: { [key: string]: never };
  beside?: { id: number; when?: string; [key: string]: string | number | undefined };
  complex?: {
    id?: {
      /** doc */
      x?: string;
    };
    [key: string]: boolean | { x?: string } | undefined;
  };
  /** @patternProperties ^x- ^n */
  patterns?: { [key: string]: string | number };
  /** @patternProperties ^s_ */
  both?: { a?: boolean; [key: string]: string | boolean | undefined };
  unevaluated?: { a?: string };
  recursive?: Maps_Json;
}

export type Maps_Json = string | number | boolean | null | Maps_Json[] | { [key: string]: Maps_Json };

export function maps(input?: MapsInput): Promise<any>;

// ---- "root"

export interface RootInput {
  q: string;
  [key: string]: number | string;
}

export function root(input: RootInput): Promise<any>;
export function root(q: string): Promise<any>;

// ---- "dictionary"

export interface DictionaryInput {
  [key: string]: Dictionary_Entry;
}

export interface Dictionary_Entry {
  next?: Dictionary_Entry;
}

export function dictionary(input?: DictionaryInput): Promise<any>;

