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

// deaf is a transport. While it is bad, Works can be neither listed nor watched, and the response to the first patch of
// each Work is lost.
type deaf struct {
	mu      sync.Mutex
	bad     bool
	lost    map[string]bool
	watches []io.Closer
}

var errDeaf = errors.New("the network is bad")

func (d *deaf) over(next http.RoundTripper) http.RoundTripper {
	return mustertest.RoundTripper(func(r *http.Request) (*http.Response, error) {
		heard := strings.HasSuffix(r.URL.Path, "/works") && r.Method == http.MethodGet
		d.mu.Lock()
		bad := d.bad
		loses := bad && r.Method == http.MethodPatch && mustertest.AttributesOf(r).Resource == "works" && !d.lost[r.URL.Path]
		if loses {
			d.lost[r.URL.Path] = true
		}
		d.mu.Unlock()
		if bad && heard {
			return nil, errDeaf
		}
		response, err := next.RoundTrip(r)
		switch {
		case err != nil:
		case loses:
			_ = response.Body.Close()
			return nil, errDeaf
		case heard:
			d.mu.Lock()
			d.watches = append(d.watches, response.Body)
			d.mu.Unlock()
		}
		return response, err
	})
}

func (d *deaf) turn(bad bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.bad, d.lost = bad, map[string]bool{}
	for _, w := range d.watches {
		_ = w.Close()
	}
	d.watches = nil
}

// losesAnswers checks that after a write without a response, the controller reads the Work once before it writes
// anything, and does not wait for a watch.
func (f *hollows) losesAnswers(t *testing.T) {
	l := &lifeTest{fleet: f, hub: &hub{t: t, client: f.client, config: f.config, namespace: "deaf"}}
	require.NoError(t, l.client.Create(t.Context(), namespace(l.namespace)))
	var w traffic
	w.forget()
	var d deaf
	f.control(t, l.namespace, &w, d.over)
	l.choose("m000", "m001", "m002")
	l.distribute("web", "some", nil, l.object("blue"))
	l.exactly(1, 1, counts{"m000 blue": 1, "m001 blue": 1, "m002 blue": 1})

	w.forget()
	d.turn(true)
	l.change("web", func(s *v1alpha1.WorkSet) { s.Spec.Manifests[0] = l.object("green") })
	l.until("all have it, and it asks", func() error {
		n := 0
		for _, work := range f.seen.of(l.namespace) {
			if well(work) && work.Generation == 2 {
				n++
			}
		}
		if asked := w.read("one of works"); n < 3 || asked < 3 {
			return fmt.Errorf("%d have it, and it has asked %d times", n, asked)
		}
		return nil
	})
	d.turn(false)
	l.exactly(2, 2, counts{"m000 green": 2, "m001 green": 2, "m002 green": 2})
	require.Empty(t, w.failures(), "who has asked has nothing to write")
	require.Equal(t, 3, w.counts()["PATCH works"])

	require.NoError(t, l.client.Delete(t.Context(), l.get("web")))
	l.until("all is gone", func() error {
		if n := len(f.seen.of(l.namespace)); n > 0 {
			return fmt.Errorf("there are %d Works", n)
		}
		return nil
	})
}
