package agent_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

// TestJob_ResultSurvivesSuspension checks that the failure of a Job that was deleted by its TTL is reported again after
// a suspension of its Work, during which another agent started, and not before a changed Job has failed.
func TestJob_ResultSurvivesSuspension(t *testing.T) {
	testkit.Virtual(t, testJobResultSurvivesSuspension)
}

func testJobResultSurvivesSuspension(t *testing.T) {
	f := newMemoryFixture(t)
	stop := f.start()
	work := f.work("migration", "{"+manifests(jobOnce)+"}")
	job := f.failJob()
	has := f.degraded(work)
	f.Eventually("the Work is not ready", has(v1alpha1.ReasonNotReady))
	require.NoError(t, f.member.Delete(t.Context(), job))
	f.Holds("Job once does not exist", func() bool { return f.read("Job", "once") == nil })
	f.change(work, "{suspend: true, "+manifests(jobOnce)+"}")
	f.Eventually("the Work is suspended", func() error {
		if err := f.Client.Get(t.Context(), client.ObjectKeyFromObject(work), work); err != nil {
			return err
		}
		return equal(v1alpha1.ReasonSuspended, condition(work, v1alpha1.ConditionProgressing).Reason)
	})
	stop()
	f.start()
	f.change(work, "{"+manifests(jobOnce)+"}")
	f.Eventually("the Work is not ready", has(v1alpha1.ReasonNotReady))
	require.Nil(t, f.read("Job", "once"), "the Job does not run again")

	changed := strings.Replace(jobOnce, "backoffLimit: 0", "backoffLimit: 1", 1)
	f.change(work, "{suspend: true, "+manifests(changed)+"}")
	f.Eventually("the changed Job is not applied", func() error {
		if err := f.Client.Get(t.Context(), client.ObjectKeyFromObject(work), work); err != nil {
			return err
		}
		available := meta.FindStatusCondition(work.Status.Manifests[0].Conditions, v1alpha1.ConditionAvailable)
		return equal(fmt.Sprint(v1alpha1.ReasonNotApplied, work.Generation),
			fmt.Sprint(available.Reason, available.ObservedGeneration))
	})
}

// failJob waits for the Job once, and lets it fail.
func (f *fixture) failJob() *unstructured.Unstructured {
	f.T.Helper()
	f.Holds("Job once exists", func() bool { return f.read("Job", "once") != nil })
	job := f.read("Job", "once")
	require.NoError(f.T, unstructured.SetNestedSlice(job.Object, []any{
		map[string]any{"type": "FailureTarget", "status": "True", "reason": "BackoffLimitExceeded"},
		map[string]any{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"},
	}, "status", "conditions"))
	require.NoError(f.T, unstructured.SetNestedField(job.Object, "2000-01-01T00:00:00Z", "status", "startTime"))
	require.NoError(f.T, f.member.Status().Update(f.T.Context(), job))
	return job
}

// degraded returns a function that returns an error unless the condition Degraded of the current generation has a
// reason.
func (f *fixture) degraded(work *v1alpha1.Work) func(reason string) func() error {
	return func(reason string) func() error {
		return func() error {
			if err := f.Client.Get(f.T.Context(), client.ObjectKeyFromObject(work), work); err != nil {
				return err
			}
			if c := condition(work, v1alpha1.ConditionDegraded); c == nil || c.Reason != reason ||
				c.ObservedGeneration != work.Generation {
				return fmt.Errorf("Degraded is %+v, want %s:\n%s", c, reason, render(work.Status))
			}
			return nil
		}
	}
}

// TestJob_ResultSurvivesOldWatch checks that the failure of a Job that was deleted by its TTL is kept if the agent is
// started again, and the watch of the member still has the Job.
func TestJob_ResultSurvivesOldWatch(t *testing.T) { testkit.Virtual(t, testJobResultSurvivesOldWatch) }

func testJobResultSurvivesOldWatch(t *testing.T) {
	f := newMemoryFixture(t)
	stop := f.start()
	work := f.work("migration", "{"+manifests(jobOnce)+"}")
	f.failJob()
	has := f.degraded(work)
	f.Eventually("the Work is not ready", has(v1alpha1.ReasonNotReady))
	stop()
	read := make(chan struct{}, 100)
	f.toMember.intercept(func(request *http.Request, next http.RoundTripper) (*http.Response, error) {
		if describe(request) != "GET jobs once" {
			return next.RoundTrip(request)
		}
		read <- struct{}{}
		request.URL.Path += "-deleted" // no Job has this name
		return next.RoundTrip(request)
	})
	f.start()
	<-read
	f.awaitNoWrites()
	require.NoError(t, has(v1alpha1.ReasonNotReady)())
}
