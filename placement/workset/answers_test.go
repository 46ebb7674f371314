package workset_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/muster-sdk/muster/mustertest"
	"github.com/muster-sdk/muster/placement/v1alpha1"
)

// lossyTransport is a transport. While down is true, Works can be neither listed nor watched, and the response to the
// first patch of each Work is lost.
type lossyTransport struct {
	mu      sync.Mutex
	down    bool
	lost    map[string]bool
	watches []io.Closer
}

var errConnection = errors.New("the connection is lost")

func (d *lossyTransport) wrap(next http.RoundTripper) http.RoundTripper {
	return mustertest.RoundTripper(func(r *http.Request) (*http.Response, error) {
		reads := strings.HasSuffix(r.URL.Path, "/works") && r.Method == http.MethodGet
		d.mu.Lock()
		down := d.down
		loses := down && r.Method == http.MethodPatch && mustertest.AttributesOf(r).Resource == "works" && !d.lost[r.URL.Path]
		if loses {
			d.lost[r.URL.Path] = true
		}
		d.mu.Unlock()
		if down && reads {
			return nil, errConnection
		}
		response, err := next.RoundTrip(r)
		switch {
		case err != nil:
		case loses:
			_ = response.Body.Close()
			return nil, errConnection
		case reads:
			d.mu.Lock()
			d.watches = append(d.watches, response.Body)
			d.mu.Unlock()
		}
		return response, err
	})
}

func (d *lossyTransport) setDown(down bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.down, d.lost = down, map[string]bool{}
	for _, w := range d.watches {
		_ = w.Close()
	}
	d.watches = nil
}

// checkLostResponses checks that after a write without a response, the controller reads the Work once before it writes
// anything, and does not wait for a watch.
func (f *hollows) checkLostResponses(t *testing.T) {
	l := &lifeTest{fleet: f, hub: f.in(t, "deaf")}
	require.NoError(t, l.Client.Create(t.Context(), namespace(l.Namespace)))
	var w traffic
	w.reset()
	var d lossyTransport
	f.control(t, l.Namespace, &w, d.wrap)
	l.choose("m000", "m001", "m002")
	l.distribute("web", "some", nil, l.object("blue"))
	l.requireExactly(1, 1, counts{"m000 blue": 1, "m001 blue": 1, "m002 blue": 1})

	w.reset()
	d.setDown(true)
	l.change("web", func(s *v1alpha1.WorkSet) { s.Spec.Manifests[0] = l.object("green") })
	l.until("all members have the new revision, and the controller reads their Works", func() error {
		n := 0
		for _, work := range f.observed.of(l.Namespace) {
			if isAvailable(work) && work.Generation == 2 {
				n++
			}
		}
		if reads := w.read("one of works"); n < 3 || reads < 3 {
			return fmt.Errorf("%d members have the new revision, %d reads of Works", n, reads)
		}
		return nil
	})
	d.setDown(false)
	l.requireExactly(2, 2, counts{"m000 green": 2, "m001 green": 2, "m002 green": 2})
	require.Empty(t, w.failures(), "a Work that was read needs no other write")
	require.Equal(t, 3, w.counts()["PATCH works"])

	require.NoError(t, l.Client.Delete(t.Context(), l.get("web")))
	l.until("all Works are gone", func() error {
		if n := len(f.observed.of(l.Namespace)); n > 0 {
			return fmt.Errorf("%d Works exist", n)
		}
		return nil
	})
}
