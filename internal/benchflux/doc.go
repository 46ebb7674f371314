// Package benchflux compares work/apply with the resource manager of flux (github.com/fluxcd/pkg/ssa), which
// kustomize-controller uses, and with bare server-side apply requests. The package contains benchmarks only:
//
//	go test -run='^$' -bench=. -benchtime=1x -timeout=30m .
//
// It is a separate module, because flux is a heavy dependency that users of muster must not have to download.
//
// # Method
//
// The benchmarks apply a thousand small ConfigMaps in one namespace, on one control plane, eight concurrently. There
// are three cases: fresh, unchanged, and one in a hundred edited by another field manager. In each round, the
// candidates run one after the other, each in a separate namespace, in another order per round. There are five rounds,
// or N rounds if -benchtime=Nx is larger. Each figure is the median of the rounds. Each ratio compares two runs of the
// same round, so that other load of the machine affects both, and is the median of the rounds as well.
//
//   - floor: one server-side apply request for each object, the minimum for an engine without state.
//   - marked: floor with the owner reference, the label and the annotation that muster adds to every object. The API
//     server has to track their ownership, too. The difference to floor is the cost of this metadata. The difference
//     between muster and marked is the cost of the engine.
//   - exact: floor for the edited objects only, which are given.
//   - watched: muster with a watch of metadata, as the agent runs it.
//   - cold: muster without the watch, as after a start before the watch has its first list.
//   - flux: flux with the options of kustomize-controller.
//
// The runs of muster include its inventory, which is written to an AppliedWork before and after. The runs of flux
// include neither an inventory, although kustomize-controller also writes one, nor its normalization of manifests.
// Flux computes the changes of eight objects concurrently, by dry-run requests, and writes one object after the other.
//
// Requests are counted on their way to the API server. The watch is a single request without an end, and is not
// counted. After each run, all ConfigMaps are checked, outside the measured time.
//
// # Goals
//
// Fresh, watched and cold take at most 1.2 times as long as floor, and flux takes at least twice as long as either.
// Unchanged, flux takes at least 20 times as long as watched. If the control plane and the benchmark share few cores,
// the computation in the API server dominates fresh. Most of the difference between muster and floor is then the cost
// of the metadata, which is largest for small objects such as these.
package benchflux
