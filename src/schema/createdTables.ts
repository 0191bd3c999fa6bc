const TABLE = /^create table (?<table>\w+)/gm

export const tablesCreatedBy = (statements: string): readonly string[] =>
  [...statements.matchAll(TABLE)].map(([, table = '']) => table)
