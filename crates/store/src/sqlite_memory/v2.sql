-- Format 2: the words of an entry that is deleted are removed from the index at once. Such an index has to be told the
-- old text of each entry that it removes.
DROP TABLE words;
CREATE VIRTUAL TABLE words USING fts5(
    content, owners, content = '', tokenize = 'porter unicode61 remove_diacritics 2'
);
INSERT INTO words (words, rank) VALUES ('secure-delete', 1);
INSERT INTO words (rowid, content, owners)
SELECT e.position, json_extract(e.body, '$.content'),
    (SELECT group_concat(c.number, ' ') || ' ' FROM collections c
     WHERE c.name = e.collection OR substr(e.collection, 1, length(c.name) + 1) = c.name || ':')
FROM entries e WHERE json_valid(e.body);
