package agent_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/muster-sdk/muster/internal/testkit"
)

// TestAgent_StoppedBeforeItsCacheIsSynced checks that an agent that is stopped before the hub has listed the Works
// leaves no goroutine: the end of the bubble fails otherwise. A hub of push members starts and stops many agents.
func TestAgent_StoppedBeforeItsCacheIsSynced(t *testing.T) {
	testkit.Virtual(t, func(t *testing.T) {
		f := newMemoryFixture(t)
		f.toHub.intercept(func(request *http.Request, next http.RoundTripper) (*http.Response, error) {
			if request.Method == http.MethodGet && strings.HasSuffix(request.URL.Path, "/works") {
				<-request.Context().Done()
				return nil, request.Context().Err()
			}
			return next.RoundTrip(request)
		})
		stop := f.start()
		synctest.Wait()
		stop()
	})
}
