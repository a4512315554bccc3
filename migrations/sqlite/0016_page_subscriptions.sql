-- Who subscribes on a status page of its own hears of what that page shows.
ALTER TABLE subscriptions ADD COLUMN page_id TEXT REFERENCES status_pages (id); -- NULL for the built-in page, and for members

-- An address is subscribed once by each member, and once by the public on each page.
DROP INDEX subscriptions_by_address;
CREATE UNIQUE INDEX subscriptions_by_address ON subscriptions (address_hash, COALESCE(user_id, ''), COALESCE(page_id, ''));

-- For the pages that anybody has subscribed on, and for the removal of one.
CREATE INDEX subscriptions_of_page ON subscriptions (page_id) WHERE page_id IS NOT NULL;
