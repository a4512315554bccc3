package web

import "time"

// SubscriptionsPage lists what somebody of the team is told, and adds more.
type SubscriptionsPage struct {
	Frame
	Nameless      bool // nobody told this service its own address: see the template
	Subscriptions []SubscriptionRow
	Next          string // address of the next page, empty on the last
	First         string // address of the first page, empty on it
	Form          SubscriptionForm
	Picker        Picker
	Problems      Problems
}

func (SubscriptionsPage) template() string { return "subscriptions" }

// SubscriptionRow is one subscription in a list.
type SubscriptionRow struct {
	ID       string
	Type     string // "Email"
	Address  Said   // without secrets
	About    List   // "everything", "2 endpoints, tag prod"
	When     Said   // "when down, gated"
	Quiet    string // "22:00–07:00 Europe/Berlin", empty for none
	Broken   string // why nothing more is sent, empty while it works
	BrokenAt *time.Time
}

// SubscriptionForm is a subscription as somebody typed it.
type SubscriptionForm struct {
	Type               string // email, webhook or slack
	Address            string
	Secret             string // of a webhook, which signs with it
	All                bool
	Tags               string // separated by commas
	Severities         []Tick
	QuietFrom, QuietTo string
	QuietZone          string
}
