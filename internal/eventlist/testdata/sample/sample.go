// Package sample records Events in each way that the survey must find.
package sample

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

const broken = "Broken"

type (
	Widget   struct{}
	Gadget   struct{}
	recorder interface {
		Eventf(about, related any, kind, reason, action, note string, args ...any)
	}
)

type controller struct{ recorder recorder }

func (c controller) event(about *Widget, kind, reason, note string) {
	c.recorder.Eventf(about, nil, kind, reason, "Act", "%s", note)
}

func (c controller) warn(about *Widget, reason, note string) {
	c.event(about, corev1.EventTypeWarning, reason, note)
}

func (c controller) act(w *Widget, reason, note string) {
	c.event(w, corev1.EventTypeNormal, "Created", fmt.Sprintf("Widget %s was created.", note))
	c.warn(w, broken, "It "+"broke.")
	g := &Gadget{}
	kind, why := "x", "y"
	// +event:object=Gadget
	// +event:reason=the reason of the condition
	// +event:type=Warning if it failed, else Normal
	// +event:message=the message of the condition
	c.recorder.Eventf(g, nil, kind, why, "Act", "%s", note)

	c.recorder.Eventf(g, nil, kind, why, "Act", "%s", why)
}
