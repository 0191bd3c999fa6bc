create table if not exists cursor_secrets (id integer primary key check (id = 1), secret text not null)
