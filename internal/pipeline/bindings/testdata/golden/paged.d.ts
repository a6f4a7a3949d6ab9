// ---- "list_invoices"

export interface ListInvoicesInput {
  status?: "open" | "overdue";
  cursor?: string;
}

export interface ListInvoicesOutput {
  items: ListInvoices_Invoice[];
  next_cursor?: string | null;
}

export interface ListInvoices_Invoice {
  id: string;
  amount?: number;
}

/** Lists invoices. */
export function listInvoices(input?: ListInvoicesInput): Promise<ListInvoicesOutput>;
export function listInvoices(status?: "open" | "overdue", cursor?: string): Promise<ListInvoicesOutput>;

// ---- "list_charges"

export interface ListChargesInput {
  limit?: number;
  starting_after?: string;
}

export interface ListChargesOutput {
  data?: { id?: string }[] | null;
  has_more?: boolean;
}

/** Lists charges. */
export function listCharges(input?: ListChargesInput): Promise<ListChargesOutput>;
export function listCharges(limit?: number, starting_after?: string): Promise<ListChargesOutput>;

// ---- "list_rows"

export interface ListRowsInput {
  page?: number;
}

export interface ListRowsOutput {
  rows?: string[];
  pages?: number;
}

/** Lists rows. */
export function listRows(input?: ListRowsInput): Promise<ListRowsOutput>;
export function listRows(page?: number): Promise<ListRowsOutput>;

// ---- "list_orders"

export interface ListOrdersInput {
  offset?: number;
}

export interface ListOrdersOutput {
  result?: { orders?: { n?: number }[]; total?: number };
}

/** Lists orders. */
export function listOrders(input?: ListOrdersInput): Promise<ListOrdersOutput>;
export function listOrders(offset?: number): Promise<ListOrdersOutput>;

// ---- "list_links"

export interface ListLinksInput {
  page?: number;
}

export interface ListLinksOutput {
  results?: any[];
  /** @format uri */
  next?: string | null;
}

/** Lists links. */
export function listLinks(input?: ListLinksInput): Promise<ListLinksOutput>;
export function listLinks(page?: number): Promise<ListLinksOutput>;

// ---- "list_unknown"

export interface ListUnknownInput {
  page?: number;
  per_page?: number;
}

/** Lists what nobody knows. */
export function listUnknown(input?: ListUnknownInput): Promise<any>;
export function listUnknown(page?: number, per_page?: number): Promise<any>;

// ---- "get_one"

export interface GetOneInput {
  page?: string;
}

export type GetOneOutput = { a?: any[] } | { b?: any[] };

/** Gets one. */
export function getOne(input?: GetOneInput): Promise<GetOneOutput>;
export function getOne(page?: string): Promise<GetOneOutput>;

// ---- "hostile"

export interface HostileInput {
  cursor?: string;
}

export interface HostileOutput {
  items?: any[];
  meta?: { "Next-\nCursor"?: string; next_cursor?: string };
}

/** Has names that end a comment. */
export function hostile(input?: HostileInput): Promise<HostileOutput>;
export function hostile(cursor?: string): Promise<HostileOutput>;

