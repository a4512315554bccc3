package alerts

import (
	"context"

	"github.com/rollcallhq/rollcall/store"
)

// NewQuestion words the question whether somebody wants to hear of outages at an address: confirmURL says yes. Without it, it
// is word that the address is subscribed already, and manageURL is where to change that. page is the name of the status page they
// subscribed on, empty where that is the built-in one.
func NewQuestion(page, confirmURL, manageURL string) Message {
	m := Message{
		Kind: KindService, ID: store.NewID("ask"), Symbol: "🔔", Title: "Confirm your subscription",
		Meaning: "Somebody, most likely you, asked to hear of outages at this address. Follow the link and confirm. If you do nothing, nothing more is sent.",
		Link:    confirmURL, LinkText: "Confirm the subscription",
	}
	if confirmURL == "" {
		m.Title = "You are subscribed already"
		m.Meaning = "Somebody, most likely you, asked to hear of outages at this address, where word of them is sent already. Follow the link to change of which, or to end it."
		m.Link, m.LinkText = manageURL, "Change or end the subscription"
	}
	if page = oneLine(page, maxLine); page != "" {
		m.Title += ": " + page
	}
	return m
}

// Ask sends such a question once, and reports without secrets why it did not arrive.
func (d *Dispatcher) Ask(ctx context.Context, c store.Channel, m Message) (err error) {
	defer d.recovered(c, &err)
	_, err = d.send(ctx, d.config.PublicSenders, c, "", m)
	return err
}
