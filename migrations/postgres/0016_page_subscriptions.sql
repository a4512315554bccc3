-- Who subscribes on a status page of its own hears of what that page shows.
ALTER TABLE subscriptions ADD COLUMN page_id text COLLATE "C" REFERENCES status_pages (id);
COMMENT ON COLUMN subscriptions.page_id IS 'The status page that one from the public is of, NULL for the built-in one.';

DROP INDEX subscriptions_one_each;
CREATE UNIQUE INDEX subscriptions_one_each ON subscriptions (address_hash, (COALESCE(user_id, '')), (COALESCE(page_id, '')));
COMMENT ON INDEX subscriptions_one_each IS 'An address is subscribed once on each page, and once by each member.';

CREATE INDEX subscriptions_of_page ON subscriptions (page_id) WHERE page_id IS NOT NULL;
COMMENT ON INDEX subscriptions_of_page IS 'For the pages that anybody has subscribed on, also when one goes.';
