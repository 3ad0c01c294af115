-- A search reads the words of every passage that it finds, and the text of a few: of a long passage it is the text
-- that goes out of the row. Those that are there already stay as they are.
ALTER TABLE passages ALTER COLUMN words SET STORAGE MAIN;

-- One passage of sixteen, picked by its number so that no pattern among documents shows. A word that is everywhere
-- is seen to be so here, and the long list of where it is need not be read.
CREATE INDEX passages_sample ON passages USING gin (words) WITH (fastupdate = off)
WHERE (id * 40503 & 65535) < 4096;
