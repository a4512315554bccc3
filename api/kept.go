package api

import (
	"context"
	"fmt"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

// kept are answers of the database that everybody is given alike, for a short time: however many look at a page, the database is
// asked once in so long, and for one thing once at a time. Whoever is given an answer changes nothing in it.
type kept struct {
	span    time.Duration // for which an answer is good; zero: nothing is kept
	most    int           // answers: they bound the memory that those who look at many pages can make us spend
	flights singleflight.Group

	mu      sync.Mutex
	era     int // guarded by mu, like the rest; another one begins when everything is forgotten
	answers map[string]keptAnswer
}

type keptAnswer struct {
	value any
	asked time.Time
}

// How many answers are kept: some ten MiB of what the public is told, and as much of the index of ten thousand endpoints.
const (
	maxKept  = 200
	maxLines = 8
)

func newKept(span time.Duration, most int) *kept {
	return &kept{span: span, most: most, answers: map[string]keptAnswer{}}
}

// keep returns the answer by a name: one that is kept, or what load returns, which is then kept unless it failed. load outlives
// whoever asked first, for others wait for it too.
func keep[T any](ctx context.Context, k *kept, name string, load func(context.Context) (T, error)) (answer T, err error) {
	if k.span == 0 {
		return load(ctx)
	}
	value, era, there := k.get(name)
	if there {
		return value.(T), nil //nolint:forcetypeassert // a name is of one type
	}
	// Nobody joins a flight that began before everything was forgotten.
	flight := k.flights.DoChan(strconv.Itoa(era)+" "+name, func() (value any, err error) {
		defer func() {
			if v := recover(); v != nil {
				err = internal(fmt.Errorf("panic: %v\n%s", v, debug.Stack()))
			}
		}()
		ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), promptness, errHangs)
		defer cancel()
		asked := time.Now()
		if value, err = load(ctx); err == nil {
			k.put(name, era, keptAnswer{value, asked})
		}
		return value, err
	})
	select {
	case landed := <-flight:
		if landed.Err != nil {
			return answer, landed.Err
		}
		return landed.Val.(T), nil //nolint:forcetypeassert // likewise
	case <-ctx.Done():
		return answer, context.Cause(ctx)
	}
}

func (k *kept) get(name string) (value any, era int, there bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	answer, there := k.answers[name]
	return answer.value, k.era, there && time.Since(answer.asked) < k.span
}

// put keeps an answer, unless everything was forgotten since it was asked for.
func (k *kept) put(name string, era int, answer keptAnswer) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if era != k.era {
		return
	}
	if len(k.answers) >= k.most {
		k.makeRoomLocked()
	}
	k.answers[name] = answer
}

// makeRoomLocked forgets what is too old, and where that is too little, some at random.
func (k *kept) makeRoomLocked() {
	for name, answer := range k.answers {
		if time.Since(answer.asked) >= k.span {
			delete(k.answers, name)
		}
	}
	for name := range k.answers {
		if len(k.answers) <= k.most*9/10 {
			return
		}
		delete(k.answers, name)
	}
}

// asOf names an answer as of the latest change that viewers were told of: who asks because of it is not given an older one.
func (s *Server) asOf(name string) string { return fmt.Sprint(name, " ", s.live.news()) }

// forget has everything asked for anew: whoever changed something sees it at once.
func (k *kept) forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.era++
	clear(k.answers)
}
