package store_test

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/rollcallhq/rollcall/store"
)

// FuzzSpool opens any bytes as a spool and records what is in it: every check that is said to be there comes out, and after
// it nothing is left.
func FuzzSpool(f *testing.F) {
	whole, ends := spoolOf(f, 4)
	f.Add(whole)
	f.Add(whole[:ends[2]-7])
	f.Add(withHead(bytes.Clone(whole), ends[1], 2, 5))
	f.Add(withHead(bytes.Clone(whole), ends[1]+3, 1<<40, 1<<40))
	f.Add(append(bytes.Clone(whole[:ends[0]]), 0xff, 0xff, 0xff, 0xff))
	f.Add([]byte{})
	f.Add([]byte("SQLite format 3\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "spool")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		spool, recovered, err := store.OpenSpool(path, 0, slog.New(slog.DiscardHandler))
		if err != nil {
			if after, err := os.ReadFile(path); err != nil || !bytes.Equal(after, data) {
				t.Errorf("a file that is refused was changed (%v)", err)
			}
			return
		}
		defer spool.Close()
		if recovered.Checks < 0 || recovered.Lost < 0 || recovered.Damaged < 0 || (recovered.Checks+recovered.Damaged)*12 > len(data) {
			t.Fatalf("%+v in %d bytes", recovered, len(data))
		}
		synctest.Test(t, func(t *testing.T) {
			db := &counter{}
			r, stop := runSpooling(t, db, spool, 0)
			synctest.Wait()
			if s := r.Stats(); s.Waiting+s.Spooled != 0 || s.SpoolBytes != 64 || db.count+s.GivenUp != recovered.Checks+recovered.Damaged {
				t.Errorf("%d recorded of %+v, and then %+v", db.count, recovered, s)
			}
			stop()
		})
	})
}

// FuzzFrame reads any bytes as a check. What is read, once it is tidy, is written as it was.
func FuzzFrame(f *testing.F) {
	f.Add(store.FrameBody(store.Frame(f, usual(1))))
	f.Add(store.FrameBody(store.Frame(f, tick(1))))
	f.Add([]byte{0x0b, 0})
	f.Add([]byte{0x0b, 4, 0x0f, 0, 0x0f, 0})
	f.Fuzz(func(t *testing.T, body []byte) {
		c, err := store.ParseFrame(store.FrameAround(body))
		if err != nil {
			return
		}
		tidy, err := store.ParseFrame(store.Frame(t, c))
		if err != nil {
			t.Fatal(err)
		}
		again, err := store.ParseFrame(store.Frame(t, tidy))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tidy, again, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("a check that was read is written as another:\n%s", diff)
		}
	})
}
