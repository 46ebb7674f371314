package simulation

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/muster-sdk/muster/assembly"
	"github.com/muster-sdk/muster/mustertest"
	workagent "github.com/muster-sdk/muster/work/agent"
)

var mutantSeeds = flag.Int("mutant-seeds", 0,
	"how many seeds TestMutants_AreFound tries for each mutant; 0: the recorded one, with MUSTER_SIMULATION")

// transport is what a mutant does instead of sending a request; next sends it.
type transport func(r *http.Request, a mustertest.Attributes, next http.RoundTripper) (*http.Response, error)

func (f transport) wrap(next http.RoundTripper) http.RoundTripper {
	return mustertest.RoundTripper(func(r *http.Request) (*http.Response, error) {
		return f(r, mustertest.AttributesOf(r), next)
	})
}

// mutants are planted bugs, some with a seed that finds it. Each is one that a change of muster could introduce. They
// wrap clients and options, so that
// shipped code has no switches for them.
func mutants() []mutant {
	return []mutant{
		{name: "agent takes a Work that it cannot read for deleted", agent: transport(missingIsDeleted).wrap},
		{name: "agent does not correct drift", foundBy: 1, member: ignoreChanges("patch", "configmaps").wrap},
		{name: "agent does not delete objects", foundBy: 1, member: ignoreChanges("delete", "configmaps").wrap},
		{name: "agent removes the finalizer of a Work before its objects", foundBy: 1, agent: finalizerFirst().wrap},
		{name: "agent deletes objects beside those of a Work", member: transport(deleteAnother).wrap},
		{name: "agent writes the status of Works again and again", foundBy: 1, agentOptions: orphansAreDeletedAtOnce},
		{name: "hub does not delete Works", foundBy: 12, hub: ignoreChanges("delete", "works").wrap},
		{name: "hub does not update Works", foundBy: 1, hub: ignoreChanges("patch", "works").wrap},
		{name: "hub does not create Works again", foundBy: 2, hub: onlyOnce().wrap},
		{name: "hub deletes Works of a WorkSet whose Placement is new", hub: transport(deletesWhatItPatches).wrap},
		{name: "hub never deletes member namespaces", foundBy: 1, hub: ignoreChanges("delete", "namespaces").wrap},
		{name: "hub reads placement decisions as empty lists", hub: transport(emptyLists).wrap},
		{name: "hub is not allowed to delete RoleBindings", foundBy: 1, hub: refuse("delete", "rolebindings").wrap},
	}
}

// ignoreChanges answers a kind of write with the current object, without effect.
func ignoreChanges(verb, resource string) transport {
	return func(r *http.Request, a mustertest.Attributes, next http.RoundTripper) (*http.Response, error) {
		if a.Verb != verb || a.Resource != resource || a.Name == "" {
			return next.RoundTrip(r)
		}
		read := r.Clone(r.Context())
		read.Method, read.Body, read.ContentLength, read.URL.RawQuery = http.MethodGet, nil, 0, ""
		response, err := next.RoundTrip(read)
		if err == nil && response.StatusCode == http.StatusNotFound { // creations take effect
			_ = response.Body.Close() // in memory
			return next.RoundTrip(r)
		}
		return response, err
	}
}

// missingIsDeleted makes each Work that the hub does not have look as if a user deleted it: its AppliedWork is cleaned
// up.
func missingIsDeleted(r *http.Request, a mustertest.Attributes, next http.RoundTripper) (*http.Response, error) {
	response, err := next.RoundTrip(r)
	if err != nil || a.Resource != "works" || a.Verb != "list" || response.StatusCode != http.StatusOK {
		return response, err
	}
	return edit(response, func(list map[string]any) {
		items, _ := list["items"].([]any)
		for _, item := range items {
			metadata := item.(map[string]any)["metadata"].(map[string]any)
			metadata["deletionTimestamp"], metadata["deletionGracePeriodSeconds"] = "2000-01-01T00:00:00Z", 0
		}
	})
}

// finalizerFirst makes the agent believe that it deleted objects of a Work that is being deleted.
func finalizerFirst() transport {
	return func(r *http.Request, a mustertest.Attributes, next http.RoundTripper) (*http.Response, error) {
		if a.Verb == "patch" && a.Resource == "works" {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return nil, err
			}
			body = bytes.ReplaceAll(body, []byte(`"work.muster.dev/`), []byte(`"example.com/`))
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		}
		return next.RoundTrip(r)
	}
}

// deleteAnother deletes a second object with each object.
func deleteAnother(r *http.Request, a mustertest.Attributes, next http.RoundTripper) (*http.Response, error) {
	if a.Verb == "delete" && a.Resource == "configmaps" && strings.HasPrefix(a.Name, "o-w0-") {
		other := r.Clone(r.Context())
		other.Body, other.ContentLength = nil, 0
		other.URL.Path = strings.Replace(r.URL.Path, "o-w0-", "o-w1-", 1)
		if response, err := next.RoundTrip(other); err == nil {
			_ = response.Body.Close() // in memory
		}
	}
	return next.RoundTrip(r)
}

func orphansAreDeletedAtOnce(o *assembly.AgentOptions) {
	o.Works.OrphanGracePeriod = 1
	o.Works.PruneGate = workagent.PruneGate(func(context.Context) string { return "" })
}

// onlyOnce creates each Work once.
func onlyOnce() transport {
	return func(r *http.Request, a mustertest.Attributes, next http.RoundTripper) (*http.Response, error) {
		if a.Resource == "works" && (a.Verb == "create" || a.Verb == "patch") && strings.HasPrefix(a.Namespace, "member-m1") {
			return answer(r, apierrors.NewInternalError(io.ErrUnexpectedEOF).ErrStatus)
		}
		return next.RoundTrip(r)
	}
}

// deletesWhatItPatches deletes a Work instead of updating it.
func deletesWhatItPatches(r *http.Request, a mustertest.Attributes, next http.RoundTripper) (*http.Response, error) {
	if a.Resource == "works" && a.Verb == "patch" {
		other := r.Clone(r.Context())
		other.Method, other.Body, other.ContentLength, other.URL.RawQuery = http.MethodDelete, nil, 0, ""
		if response, err := next.RoundTrip(other); err == nil {
			_ = response.Body.Close() // in memory
		}
	}
	return next.RoundTrip(r)
}

// emptyLists answers lists of PlacementDecisions as if there were none.
func emptyLists(r *http.Request, a mustertest.Attributes, next http.RoundTripper) (*http.Response, error) {
	response, err := next.RoundTrip(r)
	if err != nil || a.Resource != "placementdecisions" || a.Verb != "list" || response.StatusCode != http.StatusOK {
		return response, err
	}
	return edit(response, func(list map[string]any) { list["items"] = []any{} })
}

// refuse answers requests as RBAC does.
func refuse(verb, resource string) transport {
	return func(r *http.Request, a mustertest.Attributes, next http.RoundTripper) (*http.Response, error) {
		if a.Verb == verb && a.Resource == resource {
			return answer(r, apierrors.NewForbidden(resourceOf(a), a.Name, io.ErrUnexpectedEOF).ErrStatus)
		}
		return next.RoundTrip(r)
	}
}

// edit changes the JSON body of a response.
func edit(response *http.Response, change func(map[string]any)) (*http.Response, error) {
	body, err := io.ReadAll(response.Body)
	_ = response.Body.Close() // in memory
	if err != nil {
		return nil, err
	}
	var object map[string]any
	if json.Unmarshal(body, &object) == nil { // protobuf stays as it is
		change(object)
		if body, err = json.Marshal(object); err != nil {
			return nil, err
		}
	}
	response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return response, nil
}

// TestMutants_AreFound checks that the oracles find each planted bug within 200 seeds.
func TestMutants_AreFound(t *testing.T) {
	if *mutantSeeds == 0 && os.Getenv("MUSTER_SIMULATION") == "" {
		t.Skip("a seed takes several seconds: set MUSTER_SIMULATION, or search with -mutant-seeds 200")
	}
	for _, planted := range mutants() {
		t.Run(planted.name, func(t *testing.T) {
			t.Parallel()
			// Two runs of one seed can differ in requests, so a recorded seed may miss what the next ones find.
			first, last := planted.foundBy, planted.foundBy+5
			if *mutantSeeds > 0 {
				first, last = 1, uint64(*mutantSeeds)
			} else if first == 0 {
				t.Skip("no seed that finds it is recorded: search with -mutant-seeds 200")
			}
			for seed := first; seed <= last; seed++ {
				if r := simulate(t, seed, planted); len(r.problems) > 0 {
					t.Logf("seed %d: %s", seed, r.problems[0])
					return
				}
			}
			t.Errorf("not found by the seeds %d to %d", first, last)
		})
	}
}
