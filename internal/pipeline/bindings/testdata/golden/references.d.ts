// ---- "recursive"

export interface RecursiveInput {
  root: Recursive_Tree;
  /** The same. */
  again?: Recursive_Tree;
}

export interface RecursiveOutput {
  node?: RecursiveOutput;
  items?: Recursive_Pair[];
}

export interface Recursive_Tree {
  value: string;
  children?: Recursive_Tree[];
}

export type Recursive_Pair = [RecursiveOutput?, Recursive_Pair?, ...any[]];

export function recursive(input: RecursiveInput): Promise<RecursiveOutput>;

// ---- "pointers"

export interface PointersInput {
  a?: Pointers_WithSlash;
  b?: Pointers_WithTilde;
  c?: Pointers_PerCent;
  d?: Pointers_E;
  e?: { deep?: { x?: number } }[];
  f?: Pointers_Deep;
  g?: Pointers_List;
}

export interface Pointers_WithSlash {
  s?: string;
}

export interface Pointers_WithTilde {
  t?: string;
}

export interface Pointers_PerCent {
  p?: string;
}

export interface Pointers_E {
  deep?: { x?: number };
}

export interface Pointers_Deep {
  x?: number;
}

export interface Pointers_List {
  second?: boolean;
}

export function pointers(input?: PointersInput): Promise<any>;

// ---- "identified"

export interface IdentifiedInput {
  address?: Identified_Address;
  relative?: Identified_PersonJson;
  anchored?: Identified_Spot;
  inside?: Identified_Name;
}

export interface Identified_Address {
  street?: string;
  country?: Identified_Country;
}

export interface Identified_PersonJson {
  name?: Identified_Name;
}

export interface Identified_Spot {
  x?: number;
  y?: number;
}

export interface Identified_Name {
  first?: string;
  last?: string;
}

export interface Identified_Country {
  code?: string;
}

export function identified(input?: IdentifiedInput): Promise<any>;

// ---- "unresolved"

export interface UnresolvedInput {
  remote: any /* unresolved $ref "https://example.com/other.json#/x" */;
  missing?: any /* unresolved $ref "#/$defs/nope" */;
  noSchema?: any /* unresolved $ref "#/required" */;
  itself?: any /* $ref "#/$defs/loop" means itself */;
  evil?: any /* unresolved $ref "*\/ alert(1) /*" */;
}

export function unresolved(input: UnresolvedInput): Promise<any>;

// ---- "aliases"

export interface AliasesInput {
  u?: Aliases_A;
}

export type Aliases_A = string | Aliases_B;

export type Aliases_B = any /* a type that refers to itself */;

export function aliases(input?: AliasesInput): Promise<any>;

// ---- "siblings"

export interface SiblingsInput {
  /** With more. */
  a?: Siblings_Base & { extra?: string };
  /** @minLength 3 */
  b?: string;
  /** @default {"id":1} */
  c?: Siblings_Base;
}

export interface Siblings_Base {
  id: number;
}

export function siblings(input?: SiblingsInput): Promise<any>;

// ---- "siblings7"

export interface Siblings7Input {
  a?: Siblings7_Base;
}

export interface Siblings7_Base {
  id: number;
}

export function siblings7(input?: Siblings7Input): Promise<any>;

// ---- "sameName"

export interface SameNameInput {
  a?: SameName_Thing;
  b?: SameName_Thing2;
  c?: SameName_Input;
}

export interface SameNameOutput {
  a?: SameName_Thing3;
}

export interface SameName_Thing {
  a?: string;
}

export interface SameName_Thing2 {
  b?: string;
}

export interface SameName_Input {
  x?: string;
}

export interface SameName_Thing3 {
  other?: number;
}

export function sameName(input?: SameNameInput): Promise<SameNameOutput>;

