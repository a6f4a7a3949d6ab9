class SalesReport {
  private readonly totals = new Map<string, { orders: number; revenue: number }>();
  #rows = 0;

  constructor(private readonly sheetId: string, public readonly sheet: string = 'Orders') {}

  static async load(sheetId: string): Promise<SalesReport> {
    const report = new SalesReport(sheetId);
    await report.fetch();
    return report;
  }

  private async fetch(): Promise<void> {
    const page = 2500;
    for (let offset = 0; ; offset += page) {
      const res = await sheets.readRows({ spreadsheetId: this.sheetId, sheet: this.sheet, offset, limit: page });
      res.rows.forEach((row) => this.add(row));
      if (!res.has_more) return;
    }
  }

  private add(row: Record<string, string | number | boolean | null>): void {
    this.#rows += 1;
    const key = `${row['Region']}/${String(row['Date']).slice(0, 4)}`;
    const entry = this.totals.get(key) ?? { orders: 0, revenue: 0 };
    entry.orders += 1;
    entry.revenue += Number(row['Amount']);
    this.totals.set(key, entry);
  }

  get rows(): number {
    return this.#rows;
  }

  toJSON() {
    return Object.fromEntries(
      Array.from(this.totals.entries())
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .map(([k, v]) => [k, { orders: v.orders, revenue: +v.revenue.toFixed(2) }]),
    );
  }

  toString() {
    return `SalesReport(${this.rows} rows, ${this.totals.size} groups)`;
  }
}

const report = await SalesReport.load('orders-2026');
console.log(`${report}`);
console.log(JSON.stringify(report, null, 2).split('\n').slice(0, 5).join('\n'));
return report;
