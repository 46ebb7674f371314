package agent

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// The number of consecutive probes that change the health. The first probe takes effect at once.
const (
	failuresToUnhealthy = 3
	successesToHealthy  = 2
)

// probeTimeout is the timeout of a probe.
const probeTimeout = 5 * time.Second

// health is the result of the probes of the member's API server. The zero value is unknown.
type health struct {
	known   bool
	healthy bool
	message string // of the last change
	against int    // consecutive probes with the opposite result
}

// probed returns the health after another probe with the result err.
func (h health) probed(err error) health {
	if h.known && h.healthy == (err == nil) {
		h.against = 0
		return h
	}
	h.against++
	needed := failuresToUnhealthy
	if err == nil {
		needed = successesToHealthy
	}
	if h.known && h.against < needed {
		return h
	}
	if err != nil {
		return health{known: true, message: cut(fmt.Sprintf("The member's API server is not ready: %v.", err), maxMessage)}
	}
	return health{known: true, healthy: true, message: "The member's API server is ready."}
}

func (h health) condition() metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.ConditionHealthy, Status: metav1.ConditionFalse,
		Reason: v1alpha1.ReasonClusterNotReady, Message: h.message}
	if h.healthy {
		c.Status, c.Reason = metav1.ConditionTrue, v1alpha1.ReasonClusterReady
	}
	return c
}
