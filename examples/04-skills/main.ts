import { byRegion } from './skills/by-region';

return { open: await byRegion('Lead', 'Open'), qualified: await byRegion('Lead', 'Qualified') };
