package demo

import (
	"fmt"
	"math"
)

// orderCount is the number of orders. The drive, the sheets and the database have the same orders.
const orderCount = 10_000

type catalogueArticle struct {
	sku, name, category string
	price               float64
}

// articleCatalogue returns the products that Nordlys Instruments sells.
func articleCatalogue() []catalogueArticle {
	return []catalogueArticle{
		{"NL-T100", "T100 thermometer", "Sensors", 149.00}, {"NL-T200", "T200 cryo thermometer", "Sensors", 389.00},
		{"NL-H50", "H50 humidity sensor", "Sensors", 119.50}, {"NL-P30", "P30 pressure transmitter", "Sensors", 274.00},
		{"NL-V10", "V10 vibration monitor", "Sensors", 512.00}, {"NL-F80", "F80 flow meter", "Sensors", 845.00},
		{"NL-G2", "G2 gateway", "Gateways", 699.00}, {"NL-G2X", "G2X explosion-proof gateway", "Gateways", 1890.00},
		{"NL-C1", "C1 calibration bath", "Laboratory", 4250.00}, {"NL-R5", "R5 reference probe", "Laboratory", 1320.00},
		{"NL-LIC", "Aurora licence, one site", "Software", 960.00}, {"NL-SUP", "Support plan, one year", "Services", 1450.00},
	}
}

// makeOrders returns the table of orders, oldest first. Amounts are in whole cents.
func makeOrders(w *demoWorld) *dataTable {
	r := newSeededRand("orders")
	t := &dataTable{name: "orders", cols: []tableColumn{
		{name: "Order ID", kind: textKind}, {name: "Date", kind: dateKind}, {name: "Customer", kind: textKind}, {name: "Email", kind: textKind},
		{name: "Region", kind: textKind, options: regions}, {name: "Product", kind: textKind}, {name: "Quantity", kind: integerKind},
		{name: "Unit Price", kind: decimalKind}, {name: "Amount", kind: decimalKind},
		{name: "Status", kind: textKind, options: []string{"pending", "processing", "shipped", "completed", "cancelled", "refunded"}},
		{name: "Sales Rep", kind: textKind},
	}}
	goods := articleCatalogue()
	for i := range orderCount {
		buyer := pickOne(r, w.contacts)
		item := pickOne(r, goods)
		quantity := randomBetween(r, 1, 40)
		price := math.Round(item.price*float64(100-r.IntN(13))) / 100 // list price less a discount of up to 12 %
		age := 720 - i*720/orderCount
		t.rows = append(t.rows, []any{
			fmt.Sprintf("ORD-%05d", 10_001+i), formatDay(demoToday.AddDate(0, 0, -age)), buyer.Company, buyer.Email,
			regionOf(buyer.Country), item.name,
			int64(quantity), price, math.Round(price*float64(quantity)*100) / 100, orderStatus(r.IntN(100), age), w.staff[r.IntN(10)].fullName(),
		})
	}
	return t
}

// orderStatus returns the status of an order. The older the order is, the more likely it is completed.
func orderStatus(dice, age int) string {
	switch {
	case dice < 4:
		return "cancelled"
	case dice < 6:
		return "refunded"
	case age < 20 || dice < 14:
		return "pending"
	case age < 45:
		return "processing"
	case age < 60:
		return "shipped"
	}
	return "completed"
}

func regionOf(country string) string {
	switch country {
	case "United States":
		return "North America"
	case "Brazil":
		return "LATAM"
	case "Japan", "India":
		return "APAC"
	}
	return "EMEA"
}
