// Package benchflux measures work/apply against the resource manager of flux (github.com/fluxcd/pkg/ssa), which
// kustomize-controller applies with, and against bare server-side apply calls. It is benchmarks and nothing else:
//
//	go test -run='^$' -bench=. -benchtime=1x -timeout=30m .
//
// It is a module of its own because flux is a heavy dependency, which users of muster must not have to download.
//
// # What is measured
//
// A thousand small ConfigMaps in one namespace, on one control plane, eight at a time: fresh, unchanged, and with one
// in a hundred edited by another field manager. The ways to do it take turns, each in a namespace of its own, in
// another order each round. There are five rounds, or as many as -benchtime=Nx says when that is more. Each figure is
// the median of the rounds; so is each ratio, which is of two turns of the same round, so that what else the machine
// does hits both alike.
//
//   - floor: one server-side apply call for each object, which is the minimum for an engine without state;
//   - marked: the same with the owner reference, the label and the annotation that muster puts on every object, all of
//     which the API server has to keep account of, too: what it costs more than floor is the price of the marks, what
//     muster costs more is the engine's;
//   - exact: floor for the edited objects alone, which are given;
//   - watched: muster with a watch of metadata, as the agent runs it;
//   - cold: muster without, as after a start before the watch has its first list;
//   - flux: with the options that kustomize-controller gives it.
//
// What muster's turns cost includes the inventory, which is written to an AppliedWork before and after. Those of flux
// are without one, though kustomize-controller writes one too, and without its normalization of manifests. Eight at a
// time is what flux asks; it writes one after the other.
//
// Requests are counted on their way to the API server. The watch is one request, for ever, and is not among them. After
// each turn, all ConfigMaps are checked, outside the clock.
//
// # Aims
//
// Fresh, watched and cold take at most 1.2 times as long as floor, and flux at least twice as long as they. Unchanged,
// flux takes at least 20 times as long as watched. Where the control plane and the benchmark share few cores, fresh is
// a matter of how much the API server has to compute, and most of what muster costs more than floor is the price of the
// marks; they weigh most on small objects, as these are.
package benchflux
