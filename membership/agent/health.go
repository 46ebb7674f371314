package agent

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// How many probes in a row it takes to change one's mind. The first one of all is believed at once.
const (
	failuresToUnhealthy = 3
	successesToHealthy  = 2
)

// probeTimeout bounds a probe.
const probeTimeout = 5 * time.Second

// health is what the probes say of the member's API server. The zero value knows nothing yet.
type health struct {
	known   bool
	healthy bool
	message string // of when that last changed
	against int    // probes in a row that say otherwise
}

// probed returns the health after one more probe, which returned err.
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
	c := metav1.Condition{Type: v1alpha1.ConditionHealthy, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonClusterNotReady, Message: h.message}
	if h.healthy {
		c.Status, c.Reason = metav1.ConditionTrue, v1alpha1.ReasonClusterReady
	}
	return c
}
