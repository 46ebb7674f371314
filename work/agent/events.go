package agent

import (
	"context"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	eventsclient "k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"

	"github.com/muster-sdk/muster/internal/readycondition"
	"github.com/muster-sdk/muster/work/apply"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

// recorder emits Kubernetes Events about Works on the hub.
type recorder struct {
	client eventsclient.EventsV1Interface
	sink   events.EventSink
	scheme *runtime.Scheme
	events events.EventRecorder // set by start
}

// eventsPerSecond and eventBurst limit the rate at which the agent sends Events. Further Events wait: conditions
// report the same facts immediately, and the Events of many Works that change together would delay their statuses.
const eventsPerSecond, eventBurst = 10, 20

func newRecorder(config *rest.Config, httpClient *http.Client, scheme *runtime.Scheme) (*recorder, error) {
	client, err := eventsclient.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, err
	}
	limited := rest.CopyConfig(config)
	limited.QPS, limited.Burst, limited.RateLimiter = eventsPerSecond, eventBurst, nil
	sink, err := eventsclient.NewForConfigAndClient(limited, httpClient)
	if err != nil {
		return nil, err
	}
	return &recorder{client: client, sink: &events.EventSinkImpl{Interface: sink}, scheme: scheme}, nil
}

// start starts to send Events until the context ends. The returned function waits until the Events are sent.
func (r *recorder) start(ctx context.Context) (wait func(), err error) {
	broadcaster := events.NewBroadcaster(r.sink)
	if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		broadcaster.Shutdown()
		return nil, fmt.Errorf("send events: %w", err)
	}
	r.events = broadcaster.NewRecorder(r.scheme, "muster-work")
	return broadcaster.Shutdown, nil
}

func (r *recorder) emit(work *v1alpha1.Work, kind, reason, note string) {
	r.events.Eventf(work, nil, kind, reason, "Work", "%s", bounded(note))
}

func (r *recorder) cleanedUp(work *v1alpha1.Work) {
	r.emit(work, corev1.EventTypeNormal, "CleanedUp", "The clean-up of the Work on the member is complete.")
}

// announce emits Events about conditions whose status has changed.
func (a *Agent) announce(work *v1alpha1.Work, before, after *v1alpha1.WorkStatus) {
	for _, condition := range after.Conditions {
		was := findCondition(before.Conditions, condition.Type)
		if readycondition.Is(condition.Type) || was != nil && was.Status == condition.Status {
			continue
		}
		kind, reason := corev1.EventTypeNormal, condition.Type
		good := condition.Status == metav1.ConditionTrue
		if condition.Type == v1alpha1.ConditionApplied && good && becameTrue(before, after, v1alpha1.ConditionAvailable) {
			continue // one Event for both: each is a write to the hub
		}
		switch condition.Type {
		case v1alpha1.ConditionProgressing:
			continue // the other conditions report the result
		case v1alpha1.ConditionDegraded:
			if !good && was == nil {
				continue
			}
			if good {
				kind = corev1.EventTypeWarning
			} else {
				reason = "Recovered"
			}
		default:
			if !good && was == nil {
				continue // the rollout has only begun
			}
			if !good {
				reason = "Not" + condition.Type
			}
		}
		// +event:reason=the type of a condition that became True, or Recovered, NotApplied or NotAvailable
		// +event:type=Warning if the condition is Degraded and True, else Normal
		// +event:message=the message of the status
		a.events.emit(work, kind, reason, after.Message)
	}
}

// becameTrue reports whether a condition is True and was not before.
func becameTrue(before, after *v1alpha1.WorkStatus, kind string) bool {
	return meta.IsStatusConditionTrue(after.Conditions, kind) && !meta.IsStatusConditionTrue(before.Conditions, kind)
}

// emit emits Events about objects that other clients changed or deleted, and that the agent corrected.
func (a *Agent) emit(work *v1alpha1.Work, changes []apply.Change) {
	const most = 3 // of one reconcile
	healed := 0
	for _, change := range changes {
		if !change.Drifted || change.Action != apply.Configured && change.Action != apply.Created {
			continue
		}
		if healed++; healed <= most {
			what := "modified"
			if change.Action == apply.Created {
				what = "deleted"
			}
			a.events.emit(work, corev1.EventTypeNormal, "Healed", fmt.Sprintf(
				"%s was %s on the member and has been restored.%s", change.Object, what, spaced(change.Message)))
		}
	}
	a.metrics.healed(a.options.HubName, healed)
	if healed > most {
		a.events.emit(work, corev1.EventTypeNormal, "Healed", fmt.Sprintf(
			"%d more objects were changed on the member and have been restored.", healed-most))
	}
}

func spaced(message string) string {
	if message == "" {
		return ""
	}
	return " " + message
}
