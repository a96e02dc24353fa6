-- What an approval is bound to. One without it is of an older version, and opens nothing.
ALTER TABLE approval ADD path TEXT;
ALTER TABLE approval ADD digest TEXT;
