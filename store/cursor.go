package store

import (
	"encoding/base64"
	"encoding/json"
	"math"
	"strconv"
	"time"
)

// A cursor is the name of its list and the sort key of the last item shown, as JSON in base64. The next page begins
// after that key, so that items which come and go meanwhile neither repeat nor hide others.

// TimeCursor returns the cursor after the item with this time and id, in a list that is sorted by the two.
func TimeCursor(list string, at time.Time, id string) string {
	return encodeCursor(list, strconv.FormatInt(at.UnixMicro(), 10), id)
}

// ReadTimeCursor reads what TimeCursor wrote for the same list, or returns ErrBadCursor.
func ReadTimeCursor(list, cursor string) (at time.Time, id string, err error) {
	key, err := decodeCursor(list, cursor, 2)
	if err != nil {
		return time.Time{}, "", err
	}
	micros, err := strconv.ParseInt(key[0], 10, 64)
	if err != nil {
		return time.Time{}, "", ErrBadCursor
	}
	at = time.UnixMicro(micros).UTC()
	if at.Year() < 1 || at.Year() > 9999 {
		return time.Time{}, "", ErrBadCursor // beyond what every database can compare
	}
	return at, key[1], nil
}

// NameCursor returns the cursor after the item with this name, in a list that is sorted by it.
func NameCursor(list, name string) string { return encodeCursor(list, name) }

// ReadNameCursor reads what NameCursor wrote for the same list, or returns ErrBadCursor.
func ReadNameCursor(list, cursor string) (name string, err error) {
	key, err := decodeCursor(list, cursor, 1)
	if err != nil {
		return "", err
	}
	return key[0], nil
}

func encodeCursor(list string, key ...string) string {
	text, err := json.Marshal(append([]string{list}, key...))
	if err != nil {
		panic(err) // strings always have a JSON form
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

func decodeCursor(list, cursor string, parts int) ([]string, error) {
	text, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		return nil, ErrBadCursor
	}
	var key []string
	if json.Unmarshal(text, &key) != nil || len(key) != parts+1 || key[0] != list {
		return nil, ErrBadCursor
	}
	for _, part := range key {
		if CleanText(part) != part {
			return nil, ErrBadCursor
		}
	}
	return key[1:], nil
}

// PageLimit returns the number of items that f.Limit stands for.
func (f EndpointFilter) PageLimit() int {
	if f.Limit < 0 {
		return math.MaxInt32 // all of them
	}
	return PageLimit(f.Limit)
}

// PageOf makes a page of what a query for limit+1 items found: the one too many says that there is a next page.
func PageOf[T any](items []T, limit int, cursor func(last T) string) Page[T] {
	if len(items) <= limit {
		return Page[T]{Items: items}
	}
	items = items[:limit]
	return Page[T]{Items: items, Next: cursor(items[limit-1])}
}
