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
	"the number of seeds that TestMutants_AreFound runs for each mutant; 0: the recorded ones, with MUSTER_SIMULATION")

// transport replaces the sending of a request in a mutant. next sends the request.
type transport func(r *http.Request, a mustertest.Attributes, next http.RoundTripper) (*http.Response, error)

func (f transport) wrap(next http.RoundTripper) http.RoundTripper {
	return mustertest.RoundTripper(func(r *http.Request) (*http.Response, error) {
		return f(r, mustertest.AttributesOf(r), next)
	})
}

// mutants returns planted bugs, some with a seed that finds the bug. A change of muster could introduce each of them.
// They wrap clients and options, so that shipped code has no switches for mutants.
func mutants() []mutant {
	return []mutant{
		{name: "agent reads listed Works as deleted", agent: transport(listedWorksAreDeleted).wrap},
		{name: "agent does not correct drift", foundBy: 1, member: ignoreChanges("patch", "configmaps").wrap},
		{name: "agent does not delete objects", foundBy: 1, member: ignoreChanges("delete", "configmaps").wrap},
		{name: "agent patches Works with keys of another domain", foundBy: 1, agent: renameKeysInPatches().wrap},
		{name: "agent deletes an object of another Work with each object", member: transport(deleteAnother).wrap},
		{name: "agent deletes orphans without delay", foundBy: 1, agentOptions: deleteOrphansWithoutDelay},
		{name: "hub does not delete Works", foundBy: 12, hub: ignoreChanges("delete", "works").wrap},
		{name: "hub does not update Works", foundBy: 1, hub: ignoreChanges("patch", "works").wrap},
		{name: "hub cannot create or patch Works of member m1", foundBy: 2, hub: refuseWorksOfM1().wrap},
		{name: "hub deletes a Work before each patch", hub: transport(deleteBeforePatch).wrap},
		{name: "hub never deletes member namespaces", foundBy: 1, hub: ignoreChanges("delete", "namespaces").wrap},
		{name: "hub reads placement decisions as empty lists", hub: transport(emptyLists).wrap},
		{name: "hub is not allowed to delete RoleBindings", foundBy: 1, hub: refuse("delete", "rolebindings").wrap},
	}
}

// ignoreChanges responds to a kind of write with the current object, without effect.
func ignoreChanges(verb, resource string) transport {
	return func(r *http.Request, a mustertest.Attributes, next http.RoundTripper) (*http.Response, error) {
		if a.Verb != verb || a.Resource != resource || a.Name == "" {
			return next.RoundTrip(r)
		}
		read := r.Clone(r.Context())
		read.Method, read.Body, read.ContentLength, read.URL.RawQuery = http.MethodGet, nil, 0, ""
		response, err := next.RoundTrip(read)
		if err == nil && response.StatusCode == http.StatusNotFound { // Creations have an effect.
			_ = response.Body.Close() // in memory
			return next.RoundTrip(r)
		}
		return response, err
	}
}

// listedWorksAreDeleted adds a deletionTimestamp to each Work in a list.
func listedWorksAreDeleted(r *http.Request, a mustertest.Attributes, next http.RoundTripper) (*http.Response, error) {
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

// renameKeysInPatches replaces the domain of keys and finalizers in patches of Works.
func renameKeysInPatches() transport {
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

// deleteAnother deletes an object of WorkSet w1 with each object of WorkSet w0.
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

// deleteOrphansWithoutDelay sets the shortest grace period, and permits all deletions.
func deleteOrphansWithoutDelay(o *assembly.AgentOptions) {
	o.Works.OrphanGracePeriod = 1
	o.Works.PruneGate = workagent.PruneGate(func(context.Context) string { return "" })
}

// refuseWorksOfM1 responds with an error to each creation and patch of a Work of member m1.
func refuseWorksOfM1() transport {
	return func(r *http.Request, a mustertest.Attributes, next http.RoundTripper) (*http.Response, error) {
		if a.Resource == "works" && (a.Verb == "create" || a.Verb == "patch") && strings.HasPrefix(a.Namespace, "member-m1") {
			return respond(r, apierrors.NewInternalError(io.ErrUnexpectedEOF).ErrStatus)
		}
		return next.RoundTrip(r)
	}
}

// deleteBeforePatch deletes a Work before each patch.
func deleteBeforePatch(r *http.Request, a mustertest.Attributes, next http.RoundTripper) (*http.Response, error) {
	if a.Resource == "works" && a.Verb == "patch" {
		other := r.Clone(r.Context())
		other.Method, other.Body, other.ContentLength, other.URL.RawQuery = http.MethodDelete, nil, 0, ""
		if response, err := next.RoundTrip(other); err == nil {
			_ = response.Body.Close() // in memory
		}
	}
	return next.RoundTrip(r)
}

// emptyLists removes all items from lists of PlacementDecisions.
func emptyLists(r *http.Request, a mustertest.Attributes, next http.RoundTripper) (*http.Response, error) {
	response, err := next.RoundTrip(r)
	if err != nil || a.Resource != "placementdecisions" || a.Verb != "list" || response.StatusCode != http.StatusOK {
		return response, err
	}
	return edit(response, func(list map[string]any) { list["items"] = []any{} })
}

// refuse responds to requests as the API server does without permission.
func refuse(verb, resource string) transport {
	return func(r *http.Request, a mustertest.Attributes, next http.RoundTripper) (*http.Response, error) {
		if a.Verb == verb && a.Resource == resource {
			return respond(r, apierrors.NewForbidden(resourceOf(a), a.Name, io.ErrUnexpectedEOF).ErrStatus)
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
	if json.Unmarshal(body, &object) == nil { // A body in protobuf is not changed.
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
			// Two runs of one seed can differ in requests, so a recorded seed may miss a bug that the next seeds find.
			first, last := planted.foundBy, planted.foundBy+5
			if *mutantSeeds > 0 {
				first, last = 1, uint64(*mutantSeeds)
			} else if first == 0 {
				t.Skip("no recorded seed finds the mutant: search with -mutant-seeds 200")
			}
			for seed := first; seed <= last; seed++ {
				if r := simulate(t, seed, planted); len(r.problems) > 0 {
					t.Logf("seed %d: %s", seed, r.problems[0])
					return
				}
			}
			t.Errorf("the seeds %d to %d do not find the mutant", first, last)
		})
	}
}
