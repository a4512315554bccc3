package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	"github.com/rollcallhq/rollcall/store"
)

// OpenToRead opens the file at path, which must be there, as it is: nothing in it is changed, not even its schema, and without
// a key secrets stay sealed. Methods that write fail. The caller closes the DB.
func OpenToRead(path string) (*DB, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	readers, err := sql.Open("sqlite", dataSource(path)+"&mode=rw&_query_only=1")
	if err != nil {
		return nil, err
	}
	return &DB{readers: readers, writer: readers}, nil
}

// Saved is what a file holds that was saved.
type Saved struct {
	Version   int    // of the schema
	Proof     []byte // of the key that its secrets are sealed with; nil when it was never opened with one
	Endpoints int
	Checks    int
}

// KeyFits reports whether the secrets in the file are sealed with the key of sealer.
func (s Saved) KeyFits(sealer *store.Sealer) bool {
	return len(s.Proof) > 0 && sealer.CheckProof(s.Proof) == nil
}

// Inspect verifies a file that nobody writes to, see [Verify], and says what is in it.
func Inspect(ctx context.Context, path string) (Saved, error) {
	var s Saved
	var err error
	if s.Version, err = Verify(ctx, path); err != nil {
		return Saved{}, err
	}
	if path, err = filepath.Abs(path); err != nil {
		return Saved{}, err
	}
	file := (&url.URL{Scheme: "file", OmitHost: true, Path: path}).String()
	handle, err := sql.Open("sqlite", file+"?mode=ro&immutable=1")
	if err != nil {
		return Saved{}, err
	}
	err = handle.QueryRowContext(ctx, `
		SELECT (SELECT proof FROM secret_key), (SELECT COUNT(*) FROM endpoints), (SELECT COUNT(*) FROM checks)`).
		Scan(&s.Proof, &s.Endpoints, &s.Checks)
	return s, errors.Join(err, handle.Close())
}

// Restore puts a copy of the file at from, which was saved by [DB.Backup], in the place of the one at to, all at once: whatever
// happens, there is the one or the other. The file that was at to is kept at aside, unless there was none. No service may run
// on it. progress, unless nil, is told now and then how many bytes of how many are copied.
func Restore(ctx context.Context, from, to, aside string, progress func(done, total int)) (saved Saved, err error) {
	if file, err := filepath.EvalSymlinks(to); err == nil {
		to = file // a link stays one
	}
	if saved, err = Inspect(ctx, from); err != nil {
		return Saved{}, err
	}
	if progress == nil {
		progress = func(int, int) {}
	}
	fresh, err := copyFile(ctx, from, to, progress)
	if err != nil {
		return Saved{}, err
	}
	if err := setAside(ctx, to, aside); err != nil {
		return Saved{}, errors.Join(err, os.Remove(fresh))
	}
	if err := os.Rename(fresh, to); err != nil {
		return Saved{}, errors.Join(err, os.Remove(fresh))
	}
	return saved, syncDir(filepath.Dir(to))
}

// copyChunk is how much of a file is copied between two looks at the context.
const copyChunk = 4 << 20

// copyFile copies a file to one of a passing name beside to, onto the disk.
func copyFile(ctx context.Context, from, to string, progress func(done, total int)) (name string, err error) {
	source, err := os.Open(from)
	if err != nil {
		return "", err
	}
	defer source.Close() //nolint:errcheck // it was only read
	info, err := source.Stat()
	if err != nil {
		return "", err
	}
	fresh, err := os.CreateTemp(filepath.Dir(to), "."+filepath.Base(to)+".*") // of mode 600
	if err != nil {
		return "", err
	}
	for done := int64(0); err == nil && done < info.Size(); {
		if err = context.Cause(ctx); err != nil {
			break
		}
		var n int64
		n, err = io.CopyN(fresh, source, min(copyChunk, info.Size()-done))
		done += n
		progress(int(done), int(info.Size()))
	}
	if err = errors.Join(err, fresh.Sync(), fresh.Close()); err != nil {
		return "", errors.Join(err, os.Remove(fresh.Name()))
	}
	return fresh.Name(), nil
}

// setAside gives the file at path another name as well, and leaves nothing beside path that belongs to it: SQLite knows a log
// by its name alone, and would take it for that of any other file there.
func setAside(ctx context.Context, path, aside string) error {
	if _, err := os.Stat(path); err == nil {
		if err := foldLog(ctx, path); err != nil {
			return err
		}
		if err := absent(aside); err != nil {
			return err
		}
		if err := os.Link(path, aside); err != nil {
			// Where there are no links, there is a moment without a file.
			if err := os.Rename(path, aside); err != nil {
				return err
			}
		}
	}
	for _, suffix := range []string{"-wal", "-journal"} {
		if err := os.Rename(path+suffix, aside+suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := os.Remove(path + "-shm"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// foldLog writes what stands in the log of a file into it, unless the file is too damaged for that. It is an error when
// somebody else has it open.
func foldLog(ctx context.Context, path string) error {
	writer, _, err := openWriter(path)
	if err != nil {
		return err
	}
	var busy, pages, folded int
	err = writer.QueryRowContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`).Scan(&busy, &pages, &folded)
	if err = errors.Join(err, writer.Close()); err != nil {
		return nil //nolint:nilerr // it is replaced because it is damaged
	}
	if _, err := os.Stat(path + "-wal"); busy != 0 || err == nil {
		return fmt.Errorf("another program has %s open: end it first", path)
	}
	return nil
}
