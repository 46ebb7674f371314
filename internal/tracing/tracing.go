// Package tracing creates the OpenTelemetry spans of controllers with the global TracerProvider, which a program sets
// with otel.SetTracerProvider. Without one, spans are not recorded.
//
// A span has the name of the controller, and the namespace and the name of the object. An error is recorded as the
// reason of its status, and not as its message, because messages may contain values of objects.
package tracing

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Scope is the name of the instrumentation scope of all spans.
const Scope = "github.com/muster-sdk/muster"

// The attributes of spans. The first is that of OpenTelemetry's semantic conventions for Kubernetes.
const (
	Namespace = attribute.Key("k8s.namespace.name")
	Object    = attribute.Key("muster.object.name")
)

// tracer uses the global TracerProvider at each call, also one that is set later.
var tracer = otel.Tracer(Scope)

// Start begins the span of a controller's work on an object. The span ends when the caller calls end with the error of
// the work.
func Start(ctx context.Context, controller string, object types.NamespacedName) (_ context.Context, end func(error)) {
	ctx, span := tracer.Start(ctx, controller)
	if !span.IsRecording() {
		return ctx, ignore
	}
	if object.Namespace != "" {
		span.SetAttributes(Namespace.String(object.Namespace))
	}
	span.SetAttributes(Object.String(object.Name))
	return ctx, func(err error) {
		if err != nil {
			span.SetStatus(codes.Error, reason(err))
		}
		span.End()
	}
}

func ignore(error) {}

// reason returns the reason of an error that contains no values of objects.
func reason(err error) string {
	switch r := apierrors.ReasonForError(err); {
	case r != metav1.StatusReasonUnknown:
		return string(r)
	case errors.Is(err, context.DeadlineExceeded):
		return "DeadlineExceeded"
	case errors.Is(err, context.Canceled):
		return "Canceled"
	default:
		return "Error"
	}
}

// Reconciler returns a reconciler that has a span for each request.
func Reconciler(controller string, r reconcile.Reconciler) reconcile.Reconciler {
	return reconcile.Func(func(ctx context.Context, request reconcile.Request) (result reconcile.Result, err error) {
		ctx, end := Start(ctx, controller, request.NamespacedName)
		defer func() { end(err) }()
		return r.Reconcile(ctx, request)
	})
}
