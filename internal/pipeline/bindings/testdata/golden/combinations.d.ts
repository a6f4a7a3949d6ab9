// ---- "rootUnion"

export type RootUnionInput = { id: string } | { name: string; exact?: boolean };

export function rootUnion(input: RootUnionInput): Promise<any>;

// ---- "rootAll"

export type RootAllInput = { a: string } & { b?: number };

export function rootAll(input: RootAllInput): Promise<any>;

// ---- "eitherKey"

export type EitherKeyInput = {
  /** The id. */
  id?: string;
  name?: string;
  verbose?: boolean;
} & ({ id: string } | { name: string });

export function eitherKey(input: EitherKeyInput): Promise<any>;

// ---- "discriminated"

export interface DiscriminatedInput {
  /** What to draw. */
  shape: { kind: "circle"; r: number } | { kind: "box"; w: number; h?: number };
  list?: (string | { x?: number })[];
}

export function discriminated(input: DiscriminatedInput): Promise<any>;

// ---- "narrowed"

export interface NarrowedInput {
  a?: string /* anyOf [{"enum":["x","y"]},{"pattern":"^z"}] */;
  b?: "p" | "q";
  /** @minLength 1 */
  c?: string;
  d?: "a" | "b";
  e?: { k?: string };
}

export function narrowed(input?: NarrowedInput): Promise<any>;
export function narrowed(a?: string /* anyOf [{"enum":["x","y"]},{"pattern":"^z"}] */, b?: "p" | "q", c?: string, d?: "a" | "b", e?: { k?: string }): Promise<any>;

// ---- "conditions"

/**
 * @not {"required":["a","b"]}
 * @if {"properties":{"a":{"const":"x"}}}
 * @then {"required":["b"]}
 * @else {"required":["a"]}
 * @dependentRequired {"a":["b"]}
 * @dependencies {"b":["a"]}
 * @propertyNames {"pattern":"^[a-z]"}
 */
export interface ConditionsInput {
  a?: string;
  b?: string;
}

export function conditions(input?: ConditionsInput): Promise<any>;
export function conditions(a?: string, b?: string): Promise<any>;

// ---- "crossed"

export interface CrossedInput {
  x?: ({ p00?: string } | { p01?: string } | { p02?: string } | { p03?: string } | { p04?: string } | { p05?: string } | { p06?: string } | { p07?: string } | { p08?: string } | { p09?: string } | { p010?: string } | { p011?: string }) & ({ p10?: string } | { p11?: string } | { p12?: string } | { p13?: string } | { p14?: string } | { p15?: string } | { p16?: string } | { p17?: string } | { p18?: string } | { p19?: string } | { p110?: string } | { p111?: string }) & ({ p20?: string } | { p21?: string } | { p22?: string } | { p23?: string } | { p24?: string } | { p25?: string } | { p26?: string } | { p27?: string } | { p28?: string } | { p29?: string } | { p210?: string } | { p211?: string }) /* and 3 more conditions */;
}

export function crossed(input?: CrossedInput): Promise<any>;

// ---- "emptyBranches"

export interface EmptyBranchesInput {
  a?: any;
  b?: any;
  c?: any /* anyOf [true,{"type":"string"}] */;
  d?: string;
  e?: any;
  f?: never;
}

export function emptyBranches(input?: EmptyBranchesInput): Promise<any>;

