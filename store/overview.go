package store

// Brief is what a page of a long list shows of an endpoint.
type Brief struct {
	// Overview has no Places and no LastCheck. Its Endpoint has no headers, options, request, thresholds, channels, parents and
	// objectives, and its State no more than Status, Since, Failure, Kind, LastCheckAt and LastDuration: see Merged.
	Overview
	Hours []Rollup // by Begin and location, the running one included
}

// AddPlace takes in what a place says, which counts where its check is the latest.
func (b *Brief) AddPlace(s State) {
	if s.LastCheckAt.After(b.State.LastCheckAt) {
		b.State.Kind, b.State.LastCheckAt, b.State.LastDuration = s.Kind, s.LastCheckAt, s.LastDuration
	}
}

// WithHours gives briefs the hours of their endpoints, which come in no order.
func WithHours(briefs []Brief, hours []Rollup) ([]Brief, error) {
	at := make(map[string]int, len(briefs))
	for i, b := range briefs {
		at[b.ID] = i
	}
	for _, h := range hours {
		if i, there := at[h.EndpointID]; there {
			briefs[i].Hours = append(briefs[i].Hours, h)
		}
	}
	for i := range briefs {
		var err error
		if briefs[i].Hours, err = MergeRollups(Hourly, briefs[i].Hours); err != nil {
			return nil, err
		}
	}
	return briefs, nil
}
