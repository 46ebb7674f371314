package main

import (
	"context"
	"fmt"
	"os"
	"time"
)

// Example prints the complete output, which is the same in every run.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second) // without the hint it would wait for minutes
	defer cancel()
	if err := run(ctx, os.Stdout); err != nil {
		fmt.Println(err)
	}

	// Output:
	// The fleet, by region and grams of CO2 per kWh:
	//   north   eu  28
	//   west    eu  56
	//   south   eu  174
	//   inland  eu  710
	//   east    ap  662
	//   lab     ap  unknown
	//
	// shop: 2 of 6 clusters chosen; 1 more is feasible, 2 do not match region=eu, 1 exceeds 400 g of CO2 per kWh
	//
	// CLUSTER   RESULT     SCORE   CARBONINTENSITY   WHY
	// north     Chosen     1000    100 × 10
	// west      Chosen     808.2   80.8 × 10
	// south     Feasible   0       0 × 10
	// east      Rejected                             ClusterAffinity: does not match region=eu
	// inland    Rejected                             CarbonIntensity: exceeds 400 g of CO2 per kWh
	// lab       Rejected                             ClusterAffinity: does not match region=eu
	//
	// bank: 0 of 6 clusters chosen, but 1 is desired; 4 do not match region=ap, 1 exceeds 400 g of CO2 per kWh, 1 has property carbon.example.com/intensity with value "unknown", which is no quantity
	// It waits as unschedulable for a hint of ClusterAffinity or CarbonIntensity.
	//
	// CLUSTER   RESULT     SCORE   WHY
	// east      Rejected           CarbonIntensity: exceeds 400 g of CO2 per kWh
	// inland    Rejected           ClusterAffinity: does not match region=ap
	// lab       Rejected           CarbonIntensity: has property carbon.example.com/intensity with value "unknown", which is no quantity
	// north     Rejected           ClusterAffinity: does not match region=ap
	// south     Rejected           ClusterAffinity: does not match region=ap
	// west      Rejected           ClusterAffinity: does not match region=ap
	//
	// East gets cleaner, but stays above the limit. No hint, so bank stays where it is:
	//   east    ap  610
	//   unschedulable: 1
	//
	// East falls below the limit. The hint moves bank on, and it is decided again:
	//   east    ap  290
	//   unschedulable: 0
	//
	// bank: 1 of 6 clusters chosen; 4 do not match region=ap, 1 has property carbon.example.com/intensity with value "unknown", which is no quantity
	//
	// CLUSTER   RESULT     SCORE   CARBONINTENSITY   WHY
	// east      Chosen     1000    100 × 10
	// inland    Rejected                             ClusterAffinity: does not match region=ap
	// lab       Rejected                             CarbonIntensity: has property carbon.example.com/intensity with value "unknown", which is no quantity
	// north     Rejected                             ClusterAffinity: does not match region=ap
	// south     Rejected                             ClusterAffinity: does not match region=ap
	// west      Rejected                             ClusterAffinity: does not match region=ap
}
