package store

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"
)

// Spool is a file in which checks wait for a database that is away, once too many wait in memory. It belongs to one
// process at a time, and in there to one [Recorder].
//
// What was written to it survives the process, however that ends, and is recorded by the next one. It is not synced to the
// disk before Close: a machine that loses its power loses what its kernel held back, as a rule the last half minute.
type Spool struct {
	path  string
	limit int64
	log   *slog.Logger
	file  spoolFile

	recovered Recovered

	// What follows is read and written by whoever moves checks (see Recorder.disk), one at a time.
	window   []byte // what was read ahead, from windowAt on
	windowAt int64

	mu     sync.Mutex
	head   spoolHead // guarded by mu; as it stands in the file
	end    int64     // guarded by mu: where the next frame goes
	read   mark      // guarded by mu: up to where frames were read
	done   int64     // guarded by mu: how many frames were settled, counted as in mark
	unread int       // guarded by mu: frames behind read
	warned time.Time // guarded by mu: when a head that cannot be written was last complained of
}

// spoolFile is what a Spool needs of an *os.File.
type spoolFile interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Truncate(size int64) error
	Sync() error
}

// mark is a place in a spool: an offset at which a frame ends, and how many frames were read up to there.
type mark struct{ offset, frames int64 }

// Recovered is what an earlier process left in a spool.
type Recovered struct {
	Checks int // that will be recorded
	// Lost is how many waited in memory alone when the process was killed, or are missing at the end of the file. After a
	// clean stop it is 0.
	Lost int
	// Torn is 1 when the last frame was only half written. It is cut off, and counted in Lost.
	Torn int
	// Damaged is how many frames have a wrong checksum. They are put into a file beside the spool and are not recorded.
	Damaged int
}

// DefaultSpoolLimit has room for 30 minutes of 1,000 checks per second with four steps each.
const DefaultSpoolLimit = 2 << 30

const (
	// maxWindow is how much of a spool is read at once. A frame that is larger is read alone.
	maxWindow = 512 << 10
	// maxRead bounds what is read for one group, in bytes.
	maxRead = 4 << 20
	// warnEvery is how often the log is told of what goes on being wrong.
	warnEvery = time.Minute
)

// errSpoolFull means that a spool may not grow further.
var errSpoolFull = errors.New("spool has reached its limit")

// OpenSpool opens or creates a spool file, claims it for this process, and says in the log what it found there. limit bounds
// its size in bytes; 0 means DefaultSpoolLimit. It is an error when another process has claimed the file, and when it is
// something else than a spool. Close it after the Run of its Recorder has ended.
func OpenSpool(path string, limit int64, log *slog.Logger) (*Spool, Recovered, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, Recovered{}, fmt.Errorf("open spool: %w", err)
	}
	if err := lockFile(f); err != nil {
		err = fmt.Errorf("another process uses the spool %s: each needs one of its own", path)
		return nil, Recovered{}, errors.Join(err, f.Close())
	}
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, Recovered{}, errors.Join(fmt.Errorf("open spool: %w", err), f.Close())
	}
	s, err := openSpool(f, size, path, limit, log)
	if err != nil {
		return nil, Recovered{}, errors.Join(err, f.Close())
	}
	return s, s.recovered, nil
}

func openSpool(f spoolFile, size int64, path string, limit int64, log *slog.Logger) (*Spool, error) {
	if limit <= 0 {
		limit = DefaultSpoolLimit
	}
	s := &Spool{path: path, limit: limit, log: log, file: f}
	if err := s.takeStock(size); err != nil {
		return nil, fmt.Errorf("spool %s %w", path, err)
	}
	s.read.offset = s.head.next
	s.unread = int(s.head.checks)
	if err := s.writeHead(s.head); err != nil {
		return nil, fmt.Errorf("write spool %s: %w", path, err)
	}
	return s, s.file.Sync() // the room of the head is taken, so that it can be written on a full disk
}

// takeStock finds out what an earlier process left.
func (s *Spool) takeStock(size int64) error {
	begin := make([]byte, min(size, spoolHeadSize))
	if _, err := s.file.ReadAt(begin, 0); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("cannot be read: %w", err)
	}
	fresh := spoolHead{next: spoolHeadSize}
	if size <= spoolHeadSize && bytes.Count(begin, []byte{0}) == len(begin) { // empty, or as a file system leaves it that lost power
		s.head, s.end = fresh, spoolHeadSize
		return nil
	}
	left, err := decodeSpoolHead(begin)
	if errors.Is(err, errSpoolHeadLost) {
		s.log.Error("spool has lost its head: what was recorded from it already is recorded again, and how much was lost is not known",
			"spool", s.path)
		left, err = fresh, nil
	}
	if err != nil {
		return err
	}
	found, err := s.scan(left.next, size)
	if err != nil {
		return fmt.Errorf("cannot be read: %w", err)
	}
	if err := s.cut(&found, size); err != nil {
		return err
	}
	s.head, s.end = spoolHead{next: left.next, checks: found.frames}, found.end
	s.recovered = Recovered{
		Checks:  int(found.frames - found.damaged),
		Lost:    int(left.memory + max(left.checks-found.frames, 0)),
		Torn:    found.torn,
		Damaged: int(found.damaged),
	}
	if found.frames == 0 {
		s.head, s.end = fresh, spoolHeadSize
		if err := s.file.Truncate(min(size, spoolHeadSize)); err != nil {
			return fmt.Errorf("cannot be cut: %w", err)
		}
	}
	s.tell()
	return nil
}

func (s *Spool) tell() {
	r := s.recovered
	if r.Checks > 0 {
		s.log.Info("checks of an earlier run wait in the spool", "spool", s.path, "checks", r.Checks)
	}
	if r.Lost > 0 {
		s.log.Warn("checks were lost when the earlier run was killed: they had waited in memory", "spool", s.path, "checks", r.Lost, "torn", r.Torn)
	}
	if r.Damaged > 0 {
		s.log.Error("spool has damaged checks: they will be put aside", "spool", s.path, "checks", r.Damaged, "aside", s.asidePath())
	}
}

// found is what a scan saw.
type found struct {
	frames  int64 // whole ones
	damaged int64 // of frames, those with a wrong checksum
	torn    int   // 1 when the last frame is only half there
	end     int64 // where the last whole frame ends
	lost    bool  // what follows end is no frame: nobody can say where the next one begins
}

// scan counts the frames from an offset to the end of the file. It keeps none of them.
func (s *Spool) scan(from, size int64) (found, error) {
	out := found{end: from}
	r := bufio.NewReaderSize(io.NewSectionReader(s.file, from, max(size-from, 0)), 64<<10)
	var head [frameHeadSize]byte
	for {
		n, err := io.ReadFull(r, head[:])
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if errors.Is(err, io.ErrUnexpectedEOF) {
			out.torn = 1
			return out, nil
		}
		if err != nil {
			return out, err
		}
		length, ok := frameSize(head[:])
		if !ok {
			out.lost = true
			return out, nil
		}
		if out.end+int64(n+length) > size {
			out.torn = 1
			return out, nil
		}
		sum := crc32.New(castagnoli)
		if _, err := io.CopyN(sum, r, int64(length)); err != nil {
			return out, err
		}
		if sum.Sum32() != frameSum(head[:]) {
			out.damaged++
		}
		out.frames++
		out.end += int64(n + length)
	}
}

// cut takes what is no frame off the end of the file. What may hold checks is put aside; zeros are what a file system leaves
// of frames when the power fails.
func (s *Spool) cut(found *found, size int64) error {
	if found.end >= size {
		found.end = max(found.end, spoolHeadSize)
		return nil
	}
	if found.lost {
		zeros, err := onlyZeros(io.NewSectionReader(s.file, found.end, size-found.end))
		if err != nil {
			return fmt.Errorf("cannot be read: %w", err)
		}
		if zeros {
			found.torn = 1
		} else if err := s.putAside(found.end, size-found.end); err != nil {
			return err
		} else {
			s.log.Error("spool was damaged: its end was put aside", "spool", s.path, "aside", s.asidePath(), "bytes", size-found.end)
		}
	}
	if err := s.file.Truncate(found.end); err != nil {
		return fmt.Errorf("cannot be cut: %w", err)
	}
	return nil
}

func onlyZeros(r io.Reader) (bool, error) {
	buffered := bufio.NewReaderSize(r, 64<<10)
	for {
		b, err := buffered.ReadByte()
		if errors.Is(err, io.EOF) {
			return true, nil
		}
		if err != nil || b != 0 {
			return false, err
		}
	}
}

func (s *Spool) asidePath() string { return s.path + ".damaged" }

// putAside copies a part of the file that cannot be read to the end of a file beside it, where a person may look at it.
func (s *Spool) putAside(offset, size int64) error {
	f, err := os.OpenFile(s.asidePath(), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("put a damaged part aside: %w", err)
	}
	_, err = io.Copy(f, io.NewSectionReader(s.file, offset, size))
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("put a damaged part aside: %w", err)
	}
	return nil
}

// Close gives the file up. What is in it waits for the next process.
func (s *Spool) Close() error {
	if err := errors.Join(s.file.Sync(), s.file.Close()); err != nil {
		return fmt.Errorf("close spool %s: %w", s.path, err)
	}
	return nil
}

// hold notes that delta more checks wait in memory alone, or fewer.
func (s *Spool) hold(delta int) {
	if delta == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.head.memory += int64(delta)
	s.writeHeadLocked()
}

// writeHeadLocked keeps the numbers of the head. When that fails, all goes on: no more is lost than the knowledge of how much
// a kill would lose.
func (s *Spool) writeHeadLocked() {
	err := s.writeHead(s.head)
	if err == nil || time.Since(s.warned) < warnEvery {
		return
	}
	s.warned = time.Now()
	s.log.Warn("head of the spool cannot be written", "spool", s.path, "error", err)
}

// writeHead writes the head in one piece: a process that is killed leaves the one or the other.
func (s *Spool) writeHead(h spoolHead) error {
	_, err := s.file.WriteAt(h.encode(), 0)
	return err
}

// push writes frames of checks that waited in memory alone to the end of the file: all of them or, when it returns an
// error, none.
func (s *Spool) push(frames []byte, checks int) error {
	s.mu.Lock()
	begin := s.end
	full := begin+int64(len(frames)) > s.limit
	if !full {
		s.moveLocked(checks)
	}
	s.mu.Unlock()
	if full {
		return errSpoolFull
	}

	// No lock is held here, so that a disk that is slow keeps nobody from probing.
	_, err := s.file.WriteAt(frames, begin)
	if err != nil {
		err = errors.Join(err, s.file.Truncate(begin))
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.moveLocked(-checks)
		return err
	}
	s.end += int64(len(frames))
	s.unread += checks
	return nil
}

// moveLocked notes that checks are about to be moved from memory to the file. They are counted as frames before they are
// written, so that those that a kill keeps from being written are missed, and counted once.
func (s *Spool) moveLocked(checks int) {
	s.head.memory -= int64(checks)
	s.head.checks += int64(checks)
	s.writeHeadLocked()
}

// skip notes that the next frames need not be read because their checks are at hand.
func (s *Spool) skip(bytes int64, checks int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.read = mark{s.read.offset + bytes, s.read.frames + int64(checks)}
	s.unread -= checks
}

// next reads at most limit checks. It passes over damaged ones, which it puts aside, and says how many these were. What it
// read before an error is good.
func (s *Spool) next(limit int) (checks []Check, damaged int, err error) {
	s.mu.Lock()
	at, end := s.read, s.end
	s.mu.Unlock()
	begin := at
	checks = make([]Check, 0, limit)
	for len(checks) < limit && at.offset < end && at.offset-begin.offset < maxRead {
		var frame []byte
		if frame, err = s.frame(at.offset, end); err != nil {
			break
		}
		c, wrong := decodeFrame(frame)
		if wrong != nil {
			damaged++
			s.keepDamaged(at.offset, int64(len(frame)))
		}
		at = mark{at.offset + int64(len(frame)), at.frames + 1}
		if wrong == nil {
			checks = append(checks, c)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.read = at
	s.unread -= int(at.frames - begin.frames)
	return checks, damaged, err
}

func (s *Spool) keepDamaged(offset, size int64) {
	if err := s.putAside(offset, size); err != nil {
		s.log.Error("damaged part of the spool is lost", "spool", s.path, "bytes", size, "error", err)
	}
}

var errFramingLost = errors.New("frames cannot be told apart any more")

// frame returns the frame at an offset. It is good until the next call.
func (s *Spool) frame(offset, end int64) ([]byte, error) {
	if f, err := s.inWindow(offset); f != nil || err != nil {
		return f, err
	}
	if err := s.fill(offset, min(end-offset, maxWindow)); err != nil {
		return nil, err
	}
	if f, err := s.inWindow(offset); f != nil || err != nil {
		return f, err
	}
	size, ok := frameSize(s.window)
	if !ok || offset+int64(frameHeadSize+size) > end {
		return nil, errFramingLost
	}
	if err := s.fill(offset, int64(frameHeadSize+size)); err != nil {
		return nil, err
	}
	return s.inWindow(offset)
}

// fill reads a part of the file into the window.
func (s *Spool) fill(offset, size int64) error {
	if int64(cap(s.window)) < size {
		s.window = make([]byte, size)
	}
	s.window, s.windowAt = s.window[:size], offset
	if _, err := s.file.ReadAt(s.window, offset); err != nil {
		s.window = nil
		return err
	}
	return nil
}

// inWindow returns the frame at an offset when the window holds all of it.
func (s *Spool) inWindow(offset int64) ([]byte, error) {
	if offset < s.windowAt || offset+frameHeadSize > s.windowAt+int64(len(s.window)) {
		return nil, nil
	}
	rest := s.window[offset-s.windowAt:]
	size, ok := frameSize(rest)
	if !ok {
		return nil, errFramingLost
	}
	if len(rest) < frameHeadSize+size {
		return nil, nil
	}
	return rest[:frameHeadSize+size], nil
}

// giveUpRest passes over all that was not read, because it cannot be, and says how many checks that were.
func (s *Spool) giveUpRest() int {
	s.mu.Lock()
	begin, end := s.read.offset, s.end
	s.mu.Unlock()
	s.keepDamaged(begin, end-begin)
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.unread
	s.read = mark{s.end, s.read.frames + int64(n)}
	s.unread = 0
	return n
}

// settle notes that what was read up to a mark needs no keeping, nor do held checks that waited in memory alone. A file of
// which nothing is needed is emptied.
func (s *Spool) settle(upTo mark, held int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if upTo.frames > s.done {
		s.head.next = upTo.offset
		s.head.checks -= upTo.frames - s.done
		s.done = upTo.frames
	} else if held == 0 {
		return
	}
	s.head.memory -= int64(held)
	s.writeHeadLocked()
	if s.head.next < s.end || s.end == spoolHeadSize {
		return
	}
	if err := s.file.Truncate(spoolHeadSize); err != nil {
		return // the next time; until then it grows
	}
	s.head.next, s.end, s.window = spoolHeadSize, spoolHeadSize, nil
	s.read.offset = spoolHeadSize
	s.writeHeadLocked()
}

// counts returns how many frames are yet to be recorded, how many of these yet to be read, and the size of the file.
func (s *Spool) counts() (checks, unread int, size int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int(s.head.checks), s.unread, s.end
}

// where returns the mark up to which frames were read.
func (s *Spool) where() mark {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.read
}
