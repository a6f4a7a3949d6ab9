async function run() {
  const tables = await database.listTables();
  const out = {};
  for (const { name, rows } of tables.tables) {
    try {
      const d = await database.describeTable(name);
      out[name] = { rows, columns: d.columns.map(c => c.name + ':' + c.type).join(' ') };
    } catch (e) {
      console.log('cannot read', name + ':', e.message);
      out[name] = null;
    }
  }
  return out;
}

module.exports = run();
