package demo

import "sync"

// countries lists the countries of people and companies.
var countries = sync.OnceValue(func() []worldCountry {
	return []worldCountry{
		newCountry("Norway", "+47 22 ## ## ##", "Hanne Ingrid Solveig Astrid Silje Lars Bjørn Erik Magnus Øyvind Kari Torstein",
			"Halvorsen Bakke Nygård Solberg Dahl Lien Haugen Strand Fjeld Moen Aasen Brekke", "Oslo, Bergen, Trondheim, Stavanger", "AS, ASA"),
		newCountry("Germany", "+49 30 23125 ###", "Anna Lena Katharina Jürgen Stefan Matthias Sabine Uwe Björn Greta Friedrich Heike",
			"Müller Schneider Weiß Hoffmann Schäfer Krüger Vogel Lindemann Böhm Zimmermann Kaiser Roth", "Berlin, München, Hamburg, Stuttgart", "GmbH, AG"),
		newCountry("United States", "+1 212 555 01##", "Olivia Marcus Denise Tyrone Caroline Ethan Maria Gregory Aaliyah Jordan Hector Brooke",
			"Thompson Rivera Washington Kowalski O'Brien Patterson Nguyen Coleman Hughes Delgado Fisher Bennett", "New York, Austin, Chicago, Seattle", "Inc., LLC, Corp."),
		newCountry("United Kingdom", "+44 20 7946 0###", "Emily Oliver Charlotte Rhys Fiona Callum Priya Nigel Harriet Alistair Imogen Gareth",
			"Whitfield Ashworth Campbell Pritchard Sinclair Hargreaves Okafor Bancroft Fairclough Mehta Doyle Lockwood", "London, Manchester, Edinburgh, Bristol", "Ltd, plc"),
		newCountry("France", "+33 1 99 00 ## ##", "Amélie Camille Hélène Thierry Benoît Mathieu Chloé Étienne Inès Laurent Manon Guillaume",
			"Lefèvre Moreau Girard Rousseau Fournier Delacroix Mercier Chevalier Garnier Lemaître Besson Perrin", "Paris, Lyon, Nantes, Toulouse", "SA, SARL, SAS"),
		newCountry("Spain", "+34 910 ## ## ##", "Lucía Carmen Iñigo Álvaro Marta Rafael Pilar Sergio Nuria Gonzalo Elena Joaquín",
			"García Muñoz Ibáñez Castaño Navarro Ortega Vidal Serrano Núñez Herrera Pascual Molina", "Madrid, Bilbao, Valencia, Sevilla", "S.L., S.A."),
		newCountry("Japan", "+81 3 5550 ####", "Yuki Haruka Aiko Kenji Takeshi Sakura Hiroshi Naoko Daichi Emi Satoshi Rina",
			"Tanaka Suzuki Watanabe Kobayashi Yamamoto Nakamura Ishikawa Matsumoto Fujimoto Okada Hayashi Mori", "Tokyo, Osaka, Yokohama, Fukuoka", "K.K., G.K."),
		newCountry("India", "+91 22 5550 ####", "Ananya Rohan Meera Arjun Kavita Vikram Sneha Rahul Divya Sanjay Lakshmi Aditya",
			"Iyer Sharma Reddy Banerjee Kulkarni Desai Chatterjee Nair Malhotra Joshi Rao Pillai", "Mumbai, Bengaluru, Pune, Hyderabad", "Pvt. Ltd., Ltd."),
		newCountry("Brazil", "+55 11 5550-####", "Beatriz João Mariana Thiago Letícia Rodrigo Camila Fábio Larissa Gustavo Renata Caio",
			"Oliveira Souza Carvalho Azevedo Teixeira Barbosa Monteiro Cardoso Araújo Figueiredo Pires Moura", "São Paulo, Curitiba, Recife, Porto Alegre", "Ltda., S.A."),
		newCountry("Poland", "+48 22 555 ## ##", "Agnieszka Piotr Magdalena Tomasz Zofia Krzysztof Ewa Jakub Weronika Marcin Halina Łukasz",
			"Kowalczyk Wiśniewski Zieliński Mazur Wójcik Nowicki Pawlak Dąbrowska Górski Sikora Baran Jabłoński", "Warszawa, Kraków, Gdańsk, Wrocław", "sp. z o.o., S.A."),
	}
})

var (
	companyStems = []string{"Halden", "Brightwater", "Ostra", "Kestrel", "Lindqvist", "Meridian", "Copperfield", "Takumi", "Vega", "Almeida",
		"Corvus", "Blackwood", "Solstice", "Ferrum", "Juniper", "Zephyr", "Castellan", "Monsoon", "Tidewater", "Arctura",
		"Bellweather", "Granite", "Hollis", "Ironbridge", "Kaleido", "Lumen", "Marlowe", "Northgate", "Orion", "Palisade",
		"Quarry", "Redwood", "Saffron", "Thornbury", "Umbra", "Verdant", "Wexford", "Yarrow", "Zenith", "Aurelia"}
	companyFields = []string{
		"Foods", "Marine", "Energy", "Logistics", "Robotics", "Pharma", "Textiles", "Optics", "Aviation", "Dairy",
		"Mining", "Water", "Semiconductors",
	}
	industries = []string{
		"Manufacturing", "Energy", "Healthcare", "Logistics", "Food and beverage", "Aerospace", "Public sector",
		"Research",
	}
	contactTitles = []string{"Head of Procurement", "Plant Manager", "Chief Financial Officer", "Quality Engineer", "VP Operations", "Laboratory Director",
		"IT Manager", "Purchasing Specialist", "Maintenance Lead", "Managing Director"}
	staffTitles = []string{"Account Executive", "Account Executive", "Sales Development Representative", "Solutions Engineer", "Software Engineer",
		"Site Reliability Engineer", "Product Manager", "Support Specialist", "Finance Analyst", "Head of Sales",
		"Customer Success Manager", "Designer"}
	regions = []string{"EMEA", "North America", "LATAM", "APAC"}
)
